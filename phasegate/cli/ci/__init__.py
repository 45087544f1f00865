"""Running in a pipeline: settings from the environment in, pytest in the middle, files for people and machines out."""

"""Turns the plugin on for a clone; where the package is installed, pytest finds it by itself."""

pytest_plugins = ["phasegate.plugin"]

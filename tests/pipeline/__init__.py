"""Pipelines: settings, workflows and their shell steps."""

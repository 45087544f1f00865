"""Phasegate measures an LLM server phase by phase and fails a build when a change makes it slower.

Importing this package imports nothing heavy: the modules below are imported where they are used.
"""

__version__ = "0.1.0"

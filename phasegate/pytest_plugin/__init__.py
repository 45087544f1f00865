"""Phasegate as a pytest plugin, in the order of a run."""

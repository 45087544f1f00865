"""Measuring put together: a session, levels of load, comparisons, calibration."""

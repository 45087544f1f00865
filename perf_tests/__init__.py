"""Claims about an engine, one file per claim."""

"""The start in somebody else's repository: the files that ``phasegate init`` writes, and where they come from."""

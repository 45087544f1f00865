"""Proving the gate on the user's own machine: known slowdowns must be found, and unchanged servers left alone.

Three parts, each through the product's own judging. `known_truth` plants slowdowns into the simulator and knows what
the gate must say; `rescaled` does the same to sessions that were really measured; `unchanged` draws many builds in
which nothing changed and counts the alarms. `proof` runs all of them.
"""

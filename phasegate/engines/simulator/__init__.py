"""A server of known timing that follows continuous batching: the ground truth of tests and of ``phasegate selftest``.

`model` decides when tokens leave (pure), `service` answers over HTTP in a process of its own, `engine` makes it an
engine of the suite, `breakers` and `faults` name what it can do wrong on purpose.
"""

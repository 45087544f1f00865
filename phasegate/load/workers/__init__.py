"""One load from several workers: processes of this machine, or Ray actors on a cluster.

Strategy: every worker runs the very drivers that one process runs (`load.closed`, `load.open_loop`) on its share of
the requests, all from one moment on. The division is pure arithmetic (`plan`), what passes between workers and their
conductor is plain and picklable (`messages`), and merging puts whole recordings together (`merge`): percentiles are
taken over all of them afterwards and are never averaged. How workers are started and spoken to is the only thing in
which processes (`processes`) and a cluster (`ray_workers`) differ.
"""

"""Replay of recordings: the decisions of this version of Muster for the recorded inputs, and for a changed cluster.

A replay runs the planner's own cycles, so the replay cannot contradict the planner. `check` passes the recorded changes
to the planner and compares the decisions with the recorded decisions. `loop` submits the recorded workloads to a
simulated cluster (`extender.simulate`) with changed queues, nodes or configuration. The package does no I/O, reads no
clock and uses no randomness: equal recordings give equal results. Start reading at `replayedworld`, which rebuilds the
planner's state from recorded changes, and continue with `check`. `history` reads `workloads` from a recording, `loop`
simulates these workloads, and `figures` adds up the results for `report`.
"""

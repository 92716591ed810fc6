"""Replay of recordings: this version's decisions for the recorded inputs and for a changed cluster.

A replay runs the planner's own cycles, so the replay cannot contradict the planner. `check` passes the recorded changes
to the planner and compares the decisions with the recorded decisions. `loop` submits the recorded workloads with
changed queues, nodes or configuration, in the simulation of `extender.simulate`. The package does no I/O, reads no
clock and uses no randomness: equal recordings give equal results. Readers of the code start with `replayedworld`, which
rebuilds the state from recorded changes, then `check`. `history` reads `workloads` from a recording, `loop` simulates
them, and `figures` adds up the results for `report`.
"""

"""Replay of recordings: the planner's decisions in this version, for the recorded inputs and for a changed cluster.

A replay runs the planner's own cycles, so it cannot contradict the planner. `check` passes the recorded changes to the
planner and compares its decisions with the recorded ones. `loop` submits the recorded workloads with changed queues,
nodes or configuration, in the simulation of `extender.simulate`. The package does no I/O, reads no clock and uses no
randomness: the same recording gives the same result. Start reading at `replayedworld`, which rebuilds the state from
recorded changes, then `check`. `history` reads `workloads` from a recording, `loop` simulates them, and `figures` adds
up the results for `report`.
"""

"""Replay of recordings: the planner's decisions now on its inputs of then, and those for another cluster.

It runs the planner's own cycles, so that it cannot say anything else than the planner. `check` hands it the recorded
changes, and compares its decisions with those of then. `loop` lets the recorded workloads come to the planner with
changed queues, nodes or configuration, in the simulation of `extender.simulate`. It promises no I/O, no clock and no
chance: the same recording gives the same answer. Start at `told`, the state by recorded changes, then `check`;
`history` reads `workloads` off a recording, `loop` simulates them, and `figures` adds up what happened, for `report`.
"""

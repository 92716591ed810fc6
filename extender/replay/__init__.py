"""Decides on recordings anew: what the planner would do now with what it saw then, and what another cluster would do.

It runs the planner's own cycles, so that it cannot say anything else than the planner. `check` tells it the recorded
changes, and compares its decisions with those of then; `loop` lets the recorded workloads come to the planner with
changed queues, nodes or configuration, in the simulation of `extender.simulate`. It promises no I/O, no clock and no
chance: the same recording gives the same answer. Start at `told`, the state by recorded changes, then `check`;
`history` reads `workloads` off a recording, `loop` simulates them, and `figures` adds up what happened, for `report`.
"""

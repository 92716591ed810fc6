"""Decides on recordings anew: what the planner would do now with what it saw then, and what another cluster would do.

It runs the planner's own cycles in simulated time, so that it cannot say anything else than the planner. `check` tells
it the recorded changes, and compares its decisions with those of then; `loop` lets the recorded workloads come to the
planner with changed queues, nodes or configuration, and its placements take effect. It promises no I/O, no clock and
no chance: the same recording gives the same answer. Start at `told`, the state by recorded changes, then `check`;
`history` reads `workloads` off a recording, `members` makes their pods, `playing` is the simulated cluster, on which
`effects` carries decisions out, `loop` has its time, and `figures` adds up what happened, for the `report`.
"""

"""Simulation of the future: the planner's own cycles run in simulated time, and their decisions take effect.

Members run for their known running times. The package does no I/O, reads no clock and uses no randomness: the same
input gives the same result. Start reading at `cluster`, which has the gangs and their pods; `members` builds them.
`effects` applies decisions to the cluster; `extender.replay.loop` advances the time. `placing` finds out which gangs
would start now, without advancing the time.
"""

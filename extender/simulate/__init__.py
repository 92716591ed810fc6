"""Simulation of the future: the planner's own cycles run in simulated time, and their decisions take effect.

Members run for their known running times. The package does no I/O, reads no clock and uses no randomness: equal inputs
give equal results. Readers of the code start with `cluster`, which has the gangs and their pods. `effects` applies
decisions to the cluster; `extender.replay.loop` advances the time. `placing` determines which gangs would start now,
without advancing the time.
"""

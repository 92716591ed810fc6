"""The simulation of the future: the planner's own cycles in simulated time, whose decisions take effect.

Members run for their known running times. The package uses no I/O, no clock and no randomness: the same input gives the
same result. Start reading at `cluster`, which has the gangs and their pods; `members` builds them. `effects` applies
decisions to the cluster; `extender.replay.loop` advances the time. `placing` answers which gangs would start now,
without advancing the time.
"""

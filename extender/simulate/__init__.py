"""The single simulation of the future: the planner's own cycles in simulated time, whose decisions take effect.

Members run for their known running times. The package uses no I/O, no clock and no randomness: the same question gives
the same answer. Start at `cluster`, which has the gangs and their pods; `members` builds them. `effects` applies
decisions to it; `extender.replay.loop` advances its time. `placing` answers which gangs would start now, without
advancing the time.
"""

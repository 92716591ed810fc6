"""Simulation of the future: the planner's own cycles run in simulated time, and the cycles' decisions take effect.

Each member of a gang runs for its known running time. The package does no I/O, reads no clock and uses no randomness:
equal inputs give equal results. Start reading at `cluster`, which contains the gangs and their pods. `effects` applies
decisions to the cluster; `extender.replay.loop` advances the time. `placing` determines which gangs would start now,
without advancing the time.
"""

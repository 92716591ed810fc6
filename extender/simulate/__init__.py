"""The one simulation of the future: the planner's own cycles in simulated time, whose decisions take effect.

Members run as long as they ran. It promises no I/O, no clock and no chance: the same question gives the same answer.
Start at `loop`, which advances the time. `cluster` has the gangs and their pods, which `members` makes. `effects`
carries out decisions on the `world`, the planner's state with its objects. `placing` lets no time pass: what starts
now?
"""

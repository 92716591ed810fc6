"""The one simulation of the future: the planner's own cycles in simulated time, whose decisions take effect.

What runs ends as `ends` says: as recorded (`extender.replay`), or as declared and learned (`forecast`). It promises no
I/O and no clock, and chance only from a fixed seed: the same question gives the same answer. Start at `loop`, which has
the time; `cluster` has the gangs and their pods, which `members` makes; `effects` carries decisions out on the `world`,
the planner's state with its objects. `starts` lets no time pass: it says what would be placed now.
"""

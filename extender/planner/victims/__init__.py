"""The search for victims: the fewest and cheapest pods whose eviction lets a gang start.

Pure; `planner.actions` has preempt, reclaim and consolidate, which differ in the gangs that may be victims. The search
promises that each victim is needed, that a gang is never cut below its minimum, and that a failed search leaves the
session unchanged. `disturb` answers which gangs may be victims. Start at `pieces`, the parts of a gang that can be
evicted. `order` sorts them, `room` narrows them down by domains and amounts, and `solver` proves the rest on a
statement. Where victims get new slots, `moves` searches instead, and finds who need not move after all.
"""

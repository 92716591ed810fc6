"""The search for victims: the fewest and cheapest pods whose eviction lets a gang start.

Pure. `planner.actions` has preempt, reclaim and consolidate, which differ in the gangs that may be victims. The search
ensures that each victim is needed, that a gang is never cut below its minimum, and that a failed search leaves the
session unchanged. `disturb` decides which gangs may be victims. Start at `units`, the parts of a gang that can be
evicted. `order` sorts them, `capacity` selects by domains and amounts, and `solver` proves the selection on a
statement. If victims get new slots, `moves` searches instead, and leaves as many as possible in place.
"""

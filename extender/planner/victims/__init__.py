"""The search for victims: the fewest and cheapest pods whose eviction lets a gang start.

Pure. `planner.actions` has preempt, reclaim and consolidate, which differ in the gangs that may be victims. The search
ensures that each victim is needed and no gang is reduced below its minimum. A failed search leaves the session
unchanged. `disturb` decides which gangs may be victims. Start reading at `units`, which has the parts of a gang that
can be evicted. `order` sorts the units, `capacity` selects by domains and resources, and `solver` verifies the
selection on a statement. If victims get new slots, `moves` searches instead, and moves as few as possible.
"""

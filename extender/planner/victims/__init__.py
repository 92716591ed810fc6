"""The search for victims: the fewest and cheapest pods that must be evicted so that a gang can start.

The package does no I/O and reads no clock. `planner.actions` has the actions preempt, reclaim and consolidate, which
differ in the possible victims. The search ensures that each victim is needed and that a gang keeps its minimum unless
it is evicted as a whole. A failed search leaves the session unchanged. `disturb` determines which gangs may be victims.
Start reading at `units`, which has the evictable units: the parts of a gang that can be evicted. `order` sorts
evictable units, `capacity` selects units by domains and resources, and `solver` verifies the selection on a statement.
For victims that get new slots, `moves` replaces `solver`, and moves as few units as possible.
"""

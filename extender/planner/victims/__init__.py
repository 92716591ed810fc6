"""Who would have to go so that a gang fits: which pods may be victims, in which order, and the search for the fewest.

Pure, and no action by itself: `planner.actions` has preempt, reclaim and consolidate, which differ in whom they ask
for room. They promise that nobody is chosen of whom the gang has no use, that a gang is never cut below its minimum,
and that nothing in the session has changed after a search that failed. Start at `pieces`, what of a gang can go;
`order` and `budgets` make candidates of them; `domains` says where to look for gangs that must sit together; `room`
narrows them down by amounts alone and `solver` proves the rest.
"""

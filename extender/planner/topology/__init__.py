"""Where nodes are: domains within domains, and what gangs ask of them.

`tree` is the shape of every topology: levels, outermost first, and the domain of each node per level as an array;
`labels` makes one of node labels, and `forest` has all that a cluster has and finds the levels that a wish is about.
`requests` is what a gang asks for, as a tree of `parts`; `fit` counts what domains hold and chooses among them, over
the arrays of a `geometry`.

It promises no I/O and no clock, and that a tree is not changed once it is made. It imports the plain types of
`planner.state` and `muster`, and must not import the framework, actions or plugins. Start at `tree`.
"""

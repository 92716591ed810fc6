"""Topologies: domains of nodes within domains, and the nearness that gangs ask for.

`tree` is the shape of every topology: levels, outermost first, and the domain of each node per level as an array.
`forest` has all topologies of a cluster, those of node labels and that of `hypernodes`, which `members` and `nesting`
make. `requests` reads what a gang asks for, and `parts` makes a tree of it; `fit` counts the room of domains and
chooses one.

It promises no I/O and no clock, and that a tree is not changed once it is made. It imports the plain types of
`planner.state` and `muster`, and must not import the framework, actions or plugins. Start at `tree`.
"""

"""Topologies: nested domains of nodes, and the topology requests of gangs.

`tree` represents every topology: levels, outermost first, and the domain of each node per level as an array. `forest`
has all topologies of a cluster: trees of node labels, and the tree of `hypernodes`, which `members` and `nesting`
build. `requests` reads a gang's topology requests, and `parts` builds a tree of them; `fit` counts the free capacity of
domains and chooses a domain.

The package uses no I/O and no clock, and never changes a finished tree. The package imports the plain types of
`planner.state` and `muster`. The package must not import the framework, actions or plugins. Start reading at `tree`.
"""

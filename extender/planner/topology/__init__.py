"""Topologies: nested domains of nodes, and the topology requests of gangs.

`tree` represents a topology by its levels, outermost first, and an array per level with the domain of each node.
`forest` has all topologies of a cluster: trees of node labels, and the tree of HyperNodes (`hypernodes`), which is
built by `members` and `nesting`. `requests` reads a gang's topology requests, and `parts` builds a tree of the
requests; `fit` counts the free capacity of domains and chooses a domain.

The package does no I/O, reads no clock, and never changes a finished tree. The package imports the plain types of
`planner.state` and `muster`. The package must not import the framework, actions or plugins. Start reading at `tree`.
"""

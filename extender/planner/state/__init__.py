"""The cluster as the planner knows it, kept by events: nodes as arrays, pods by class, gangs by pod set.

It promises that an event costs what it changes, that nothing here blocks, reads a clock or talks to an API server, and
that a state kept by events is the one that the objects alone would give. It is changed on one loop (`extender.live`)
and has no lock. Of the extender it may import `planner.ledger`, `planner.dynamic` and `planner.reasons`, and no more.

Start at `state`, which is told of every object (`feed` lists the kinds), then `gangs`: what the planner sees of a gang.
`nodes` has the arrays; what is not free of them stands in the ledger, for `pods` and for the slots of `placedslots`;
`podclass` is what makes pods of one kind, as `podshape` reads it from them, and `podrecord` what is kept of each pod;
`neighbours` and `queries` are what pods demand of each other, `devices` and `claimants` the devices that they claim.
"""

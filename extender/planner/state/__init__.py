"""The planner's view of the cluster, updated by events: nodes as arrays, pods by class, gangs by pod set.

It promises that the cost of an event depends only on what it changes, and that nothing here blocks, reads a clock or
talks to an API server. The state after events equals the state built from the objects alone. It is changed on one loop
(`extender.cluster`) and has no lock. From the extender it may import only `planner.ledger`, `planner.dynamic` and
`planner.reasons`.

Start at `state`, which takes every object (`feed` lists the kinds), then `gangs`, the planner's views of gangs, which
`views` keeps, of the objects in `gangtable` and `podtable`. `nodes` has the arrays; room that is not free stands in the
ledger, for `pods` and for the slots of `placedslots`. `podclass` and `podshape` distinguish kinds of pods; `neighbours`
and `queries` are demands of pods on each other, which `comparisons` compares with the pods that exist. `devices` are
GPUs that pods share, `devicetable` and `claimants` devices that pods claim. `access` says which namespaces may use a
queue, `tables` keeps what is looked up by name alone, `nativegroups` the native PodGroups that are gangs.
"""

"""The planner's view of the cluster, updated by events: nodes as arrays, pods by class, gangs by pod set.

The cost of an event depends only on its changes. No code here blocks, reads a clock or talks to an API server. The
state after a series of events equals the state built from the final objects. Only one loop changes it
(`extender.cluster`), so it needs no lock. From the extender it may import only `planner.ledger`, `planner.dynamic` and
`planner.reasons`.

Start at `state`, which receives every object (`feed` lists the kinds). Then read `gangs`, the planner's views of gangs;
`views` builds them from the objects in `gangtable` and `podtable`. `nodes` has the arrays. Used capacity is recorded in
the ledger: for pods by `pods`, for placed slots by `placedslots`. `podclass` and `podshape` distinguish kinds of pods.
`neighbours` and `queries` are demands of pods on each other, which `comparisons` compares with existing pods. `devices`
are GPUs that pods share; `devicetable` and `claimants` handle devices that pods claim. `access` decides which
namespaces may use a queue, `tables` has objects that are looked up by name alone, and `nativegroups` has the native
PodGroups that are gangs.
"""

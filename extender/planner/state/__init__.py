"""The planner's view of the cluster, updated by watch events: nodes as arrays, pods by class, gangs by pod set.

The cost of an event depends only on its changes. No code in this package blocks, reads a clock or talks to an API
server. The state after a series of events equals the state built from the final objects. Only one event loop
(`extender.cluster`) changes the state, so the state needs no lock. Of the extender's packages, `state` may import only
`planner.ledger`, `planner.dynamic` and `planner.reasons`.

Start reading at `state`, which receives every object (`feed` lists the kinds). Continue with `gangs`, the planner's
views of gangs; `views` builds these views from the objects in `gangtable` and `podtable`. `nodes` has the arrays of
node resources. `pods` and `placedslots` record the capacity that pods and placed slots use in the ledger. `podclass`
and `podshape` distinguish kinds of pods. `neighbours` and `queries` describe demands of pods on each other, which
`comparisons` compares with existing pods. `devices` has the GPUs that pods share; `devicetable` and `claimants` handle
devices that pods claim. `access` determines which namespaces may use a queue, `tables` has objects that are found only
by name, and `nativegroups` has native PodGroups that are gangs.
"""

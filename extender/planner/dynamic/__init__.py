"""Devices that pods claim (resource.k8s.io/v1), counted so that gangs are planned on nodes that can hold them.

`cel` matches a device with an expression, `claims` reads the number of devices of each kind from a claim, and `pools`
lists the existing devices. `inventory` has the devices of every node and the kinds of each device. `rows` converts them
to amounts: devices become resources of a node, like cpu, and claims become requests for them. `needs` is the sum of all
claims of a pod.

The package guesses nothing: demands that cannot be counted exactly are left out of the amounts and reported by name.
kube-scheduler, which allocates every device, decides about them. Pure: no I/O, no clock. The package imports muster.api
and muster.resources, and from the extender only `planner.reasons`. Start at `rows`, which explains the idea.
"""

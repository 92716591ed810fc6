"""Devices that pods claim (resource.k8s.io/v1).

Devices are counted, so that gangs are planned on nodes with enough devices. `cel` evaluates an expression for a device,
`claims` reads the number of devices of each kind from a claim, and `pools` lists the existing devices. `inventory` has
the devices of every node, and the kinds to which each device belongs. `rows` represents devices as resources of a node,
like cpu, and claims as requests for these resources. `needs` computes the sum of all claims of a pod.

The package never estimates: a demand that cannot be counted exactly is not counted, and is reported by name.
kube-scheduler, which allocates all devices, checks the uncounted demands. The package does no I/O and reads no clock.
The package imports `muster.api`, `muster.resources` and, from the extender, only `planner.reasons`. Start reading at
`rows`, which explains how devices become resources.
"""

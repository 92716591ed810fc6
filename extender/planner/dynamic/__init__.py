"""Devices that pods claim (resource.k8s.io/v1), counted so that gangs are planned on nodes that can hold them.

`cel` matches a device with an expression, `claims` reads a claim as so many devices of each kind, `pools` says which
devices there are. `inventory` has those of every node and the kinds of each. `rows` turns them into amounts: devices
become resources of a node, as cpu is one, and a pod's claims requests of it. `needs` is the sum of all claims of a pod.

It promises that nothing is guessed: demands that cannot be counted exactly are left out of the amounts, in words that
name them, and kube-scheduler, which allocates every device, decides. Pure: no I/O, no clock. It imports muster.api and
muster.resources, and nothing of the extender but `planner.reasons`. Start at `rows`, which explains the idea.
"""

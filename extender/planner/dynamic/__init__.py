"""Devices that pods claim (resource.k8s.io/v1), counted so that gangs are planned on nodes that can hold them.

`cel` says whether one device matches an expression, `kinds` what a request asks a device to be, `claims` reads what a
claim asks for as so many devices of each kind, `inventory` knows the devices of every node and the kinds that each of
them is of, `rows` makes amounts of it that can be added up: devices become resources of a node, as cpu is one, and a
pod's claims requests of it. `needs` is what all claims of a pod come to, `sums` adds them up; `pools` reads slices.

It promises that nothing is guessed: what cannot be counted exactly is left out of the amounts, in words that name it,
and kube-scheduler, which allocates every device, decides it. Pure: no I/O, no clock. It imports muster.api and
muster.resources, and nothing of the extender. Start at `rows`: it has the idea.
"""

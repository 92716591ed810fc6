"""Kubernetes' own objects, reduced to the fields that Muster reads, with one module per API group.

`core` has pods, nodes and their parts, `meta` the metadata of every object, and `constraints` scheduling constraints.
`devices` has dynamic resources, and `extender` kube-scheduler's requests to an extender. Nothing here depends on gangs
or queues. Never write an object of these types back, because the fields that they leave out would be lost.
"""

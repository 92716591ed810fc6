"""Kubernetes' own objects, trimmed to the fields that Muster reads, a module per API group.

`core` has pods, nodes and their parts, `meta` the metadata of every object, `constraints` scheduling constraints,
`devices` dynamic resources, `extender` kube-scheduler's requests to an extender. Nothing here depends on gangs or
queues. Never write an object back from one of these types: the fields that they leave out would be lost.
"""

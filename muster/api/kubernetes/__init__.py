"""Kubernetes' own objects, trimmed to the fields that Muster reads, a module per API group.

`core` has pods, nodes and their parts, `meta` the metadata of every object, `constraints` those of scheduling,
`devices` dynamic resources, `extender` what kube-scheduler sends to an extender. Nothing here knows of gangs or queues.
Never write an object back from one of these types: the fields that they leave out would be lost.
"""

"""Kubernetes' own objects, reduced to the fields that Muster reads, with one module per API group.

`core` defines pods and nodes, `meta` the metadata of every object, and `constraints` scheduling constraints. `devices`
defines dynamic resources, and `extender` kube-scheduler's requests to an extender. The modules of this package do not
depend on gangs or queues. Never write an object of these types back to the API server, because the fields that the
types leave out would be lost.
"""

"""Which waiting gangs ask an autoscaler for nodes, how, and what the pods of waiting gangs say about it.

The modules promise no I/O and no clock, as the actions do: what is decided here is data, and `extender.scaling` writes
it. They import the framework, the state and the actions' search, and must not import what serves and writes. Start at
`action`, which runs at the end of every cycle; `wishes` is what queues and workloads want, `simulation` and `limits`
what speaks against it, `requests` the life of a ProvisioningRequest, `voices` what pods say and how often,
`evictions` what those on nodes tell about scaling down.
"""

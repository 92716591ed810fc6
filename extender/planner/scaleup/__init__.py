"""Requests of waiting gangs to autoscalers, and conditions and annotations of pods for autoscalers.

Like the actions, the package does no I/O and reads no clock: `extender.scaling` carries out its decisions. The package
imports the framework and the state, and must not import code that serves requests or writes to the API server. Start
reading at `action`, which runs at the end of every cycle. `preferences` reads the annotations of queues and workloads;
`limits` determines why no nodes are requested. `requests` follows a ProvisioningRequest, and `podwrites` determines the
writes to pods and their rates.
"""

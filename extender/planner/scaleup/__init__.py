"""Requests of waiting gangs to autoscalers, and the conditions and annotations of pods for them.

The modules promise no I/O and no clock, as the actions do: decisions are data that `extender.scaling` writes. They
import the framework and the state, and must not import anything that serves and writes. Start at `action`, which runs
at the end of every cycle. `wishes` reads the annotations of queues and workloads, `limits` has the reasons not to ask,
`requests` the life of a ProvisioningRequest, `voices` the writes to pods and their rates.
"""

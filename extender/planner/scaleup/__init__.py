"""Requests of waiting gangs to autoscalers, and conditions and annotations of pods for autoscalers.

Like the actions, the modules do no I/O and read no clock: `extender.scaling` carries out the decisions. The modules
import the framework and the state, and must not import code that serves requests or writes to the API server. Readers
of the code start with `action`, which runs at the end of every cycle. `preferences` reads the annotations of queues and
workloads; `limits` has the reasons for which no nodes are requested. `requests` follows a ProvisioningRequest, and
`podwrites` determines the writes to pods and their rates.
"""

"""The life of a Volcano Job.

`machine`, `policies`, `events`, `counts`, `sync`, `kill`, `pods`, `podgroup`, `status` and `timers` decide: pure
functions of objects, no I/O, no clock. The other modules carry out what these decided; `expectations` holds what this
process did but its caches do not show yet. Decisions must not import `muster.kube`.
"""

"""What is in a pod: plugins turn a workload into an immutable plan of pod sets, counts, slots, endpoints and env.

`adapters` tell a pod's rank, how many there are and where rank 0 is; `info` is what plugins build on, `plan` what comes
out, `framework` runs the plugins in fixed order, `registry` lists the built-in ones. Promises to be pure: owners, pods
and times are handed in. It must not import muster.kube, and does no I/O.
"""

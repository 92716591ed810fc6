"""The shared kernel: what the three processes and the command line have in common.

`api` has the wire types, `resources` their arithmetic, `crds` what the API server is told of them; `kube` talks to an
API server; `volcano` is the model of a Volcano Job and `workloads` the table of all kinds of workloads; `runtime` says
what is in a pod; `process` is how a process of ours serves, logs and tells how it is.
Imports go down only, in the order that pyproject.toml states.

Promises to know nothing of those who use it: it must not import webhook, extender, controller, certs or musterctl.
Start with `api`.
"""

"""The shared kernel of the three processes and the command line.

`api` has the wire types, `resources` their arithmetic, `crds` their CustomResourceDefinitions. `kube` talks to an API
server. `volcano`, `workloads` and `runtime` decide on the content of pods. `process` serves, logs and reports health.
Imports go down only, in the order that pyproject.toml states.

It does not depend on its users: it must not import webhook, extender, controller, history, gangs, certs, web or
musterctl. Start with `api`.
"""

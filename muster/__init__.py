"""The shared kernel of the three processes and the command line.

`api` has the wire types, `resources` the arithmetic of resources, and `crds` the CustomResourceDefinitions. `kube`
talks to an API server. `volcano`, `workloads` and `runtime` derive the content of pods from users' workloads. `process`
serves, logs and reports health. A package imports only packages that come later in the order of layers in
pyproject.toml.

The kernel does not depend on its users. The kernel must not import webhook, extender, controller, history, gangs,
certs, web or musterctl. Start reading at `api`.
"""

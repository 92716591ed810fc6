"""The model of a Volcano Job, shared by webhook, extender, controller and command line.

`tasks` has the number of pods of a task, its minimum, the defaults of its fields, slots and names, and references to a
Job. `pods` has the manifests of pods, pinned or gated, and `manifests` additions to them such as volumes. `podgroup`
has the gang, `access` the namespaces that may use a queue and its node pool, `queuelimits` the limits and weights of
queues, and `plugins` the additions of `spec.plugins`. Phases, events and restarts are in `controller.job.rules`.

All functions are pure functions of objects, and each number is defined in one place. There is no I/O (except that the
registry of plugins reads once which packages are installed), no clock, and no randomness. The package must import
nothing but muster.api and muster.resources. Start reading with `tasks`, then `pods.complete_pod`.
"""

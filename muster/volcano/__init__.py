"""The model of a Volcano Job, shared by webhook, extender, controller and command line.

`tasks` has the number of pods of a task, its minimum, the values of empty fields, the slots with their names, and the
references of objects to a Job. `pods` has the manifests of pods, pinned or gated, `manifests` additions to them such as
volumes. `podgroup` has the gang, `access` the namespaces that may use a queue and its node pool, `queuelimits` its
limits and weights, `plugins` the additions of `spec.plugins`. Phases, events and restarts are in
`controller.job.rules`.

All functions are pure functions of objects, and each number has one definition. There is no I/O (except that the
registry of plugins reads once which packages are installed), no clock, no random numbers. The package must import
nothing but muster.api and muster.resources. Start with `tasks`, then `pods.complete_pod`.
"""

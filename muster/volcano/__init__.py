"""The model of a Volcano Job, shared by webhook, extender, controller and command line.

`tasks` defines the pods of a task (their number, minimum, slots and names), defaults of its fields, and references to a
Job. `pods` creates pinned or gated pods, and `manifests` adds, for example, volumes to them. `podgroup` creates the
PodGroup. `access` decides which namespaces may use a queue, and finds its node pool. `queuelimits` parses limits and
weights of queues, and `plugins` implements `spec.plugins`. Phases, events and restarts are in `controller.job.rules`.

All functions are pure functions of objects, and each number is defined in one place. There is no I/O (except that the
registry of plugins reads once which packages are installed), no clock, and no randomness. The package must import
nothing but muster.api and muster.resources. Readers of the code start with `tasks`, then `pods.complete_pod`.
"""

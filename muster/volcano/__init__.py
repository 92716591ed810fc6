"""The model of a Volcano Job, shared by webhook, extender, controller and command line.

`tasks` defines the pods of a task (their number, minimum, slots and names), the defaults of its fields, and references
to a Job. `pods` creates pinned or gated pods, and `manifests` adds volumes, variables and ports to pods. `podgroup`
creates the PodGroup. `access` decides which namespaces may use a queue, and finds its node pool. `queuelimits` parses
limits and weights of queues, and `plugins` implements `spec.plugins`. Phases, events and restarts are in
`controller.job.rules`.

All functions are pure functions of objects, and each number of pods is computed in one place. The package has no I/O,
no clock and no randomness; only the registry of plugins reads, once, which packages are installed. The package
`muster.volcano` must import nothing but muster.api and muster.resources. Start reading at `tasks`, then continue with
`pods.complete_pod`.
"""

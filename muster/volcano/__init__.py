"""A Volcano Job: the one model that webhook, extender, controller and command line read it by.

Here are `tasks` (how many pods, how many at least), `defaults` (what holds where the Job says nothing), `slots` (the
pods that it wants), `hosts` (their names), `pods` (their manifests, pinned or gated), `claims` (its volumes),
`podgroup` (its gang), `owner` (what belongs to it), and `plugins` (what `spec.plugins` adds, with ports and checks).
How a Job lives is not here: phases, events and restarts are `controller.job.rules`.

It promises pure functions of objects and one definition of each number: nothing does I/O (but that the registry of
plugins asks once which packages are installed), reads a clock or draws random numbers. It must import nothing but
muster.api and muster.resources. Start with `tasks`, then `pods.complete_pod`.
"""

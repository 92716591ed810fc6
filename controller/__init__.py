"""Whether a pod exists: drives Volcano Jobs through their life, and gives every gang its PodGroup.

A folder for each kind of object that the controller looks after: `job`, `trainjob`, `queues`, `gangs`, and
`certificates` for those of Muster's own servers; `plugins` make what the pods of Jobs need. `app` puts caches, handlers
and workers together, `main` is the process around it with its lease. What decides is pure and stands in `rules`, or in
the package `certs`; the rest reads caches and carries out.

It promises that, killed at any instruction, it goes on to the same end after a restart: every intent is written to the
object before it is carried out, and every name is deterministic. It must not import the webhook or the extender. Start
with `app.Controller`, then `job.reconcile`.
"""

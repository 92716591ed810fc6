"""The controller: drives Jobs, JobFlows, CronJobs and TrainJobs through their life, and gives every gang its PodGroup.

A folder for each kind of object: `job`, `flow`, `cron`, `trainjob`, `queues`, `gangs`, and `certificates` for those of
Muster's own servers. `app` has the caches, handlers and workers, `main` the process around them with its lease.
Decisions are pure functions in `rules`, or in the package `certs`; the other modules read caches (`caches` has the
objects that these do not show yet) and call the API server (`live` for single objects past the caches). `kind` is what
the controllers of one kind share.

Promises that, killed at any instruction, it goes on to the same end after a restart: every intent is written to the
object before it is carried out, and every name is deterministic. It must not import the webhook or the extender. Start
with `app.Controller`, then `job.rules.policies`.
"""

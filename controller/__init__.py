"""The controller: drives Jobs, JobFlows, CronJobs and TrainJobs through their life, and gives every gang its PodGroup.

A folder for each kind of object: `job`, `flow`, `cron`, `trainjob`, `queues`, `gangs`; `certificates` are those of
Muster's own servers. `kit` is what each controller is made of: a worker over keys, its caches and their handlers. `app`
connects them all, `main` is the process around them with its lease. Decisions are pure functions in `rules`, or in the
package `certs`. The other modules read caches (`caches` has those of all, and objects that they do not show yet) and
call the API server (`live` for single objects past the caches).

Promises that, killed at any instruction, it reaches the same end after a restart. Every intent is written to the object
before it is carried out, and every name is deterministic. It must not import the webhook or the extender. Start with
`app.Controller`, then `job.rules.policies`.
"""

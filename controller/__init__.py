"""The controller: runs Jobs, JobFlows, CronJobs and TrainJobs, and creates the PodGroup of every gang.

Each kind of object has a folder: `job`, `flow`, `cron`, `trainjob`, `queues`, `gangs`; `certificates` manages the
certificates of Muster's own servers. `kit` contains the building blocks of a controller: a worker over keys, caches and
handlers. `app` connects all controllers, and `main` is the process with its lease. Decisions are pure functions in
`rules`, or in the package `certs`. The other modules read caches and call the API server; `caches` has the shared
caches and recent writes, and `live` reads single objects directly.

If the controller is killed at any point, it reaches the same result after a restart. Every intent is written to the
object before it is carried out, and every name is deterministic. The package must not import the webhook or the
extender. Readers of the code start with `app.Controller`, then `job.rules.policies`.
"""

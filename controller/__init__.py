"""The controller process, which runs Jobs, JobFlows, CronJobs and TrainJobs, and creates the PodGroup of every gang.

Each kind of object has a folder: `job`, `flow`, `cron`, `trainjob`, `queues`, `gangs`; `certificates` manages the
certificates of Muster's own servers. `kit` contains the building blocks of a controller: work queues with their
threads, caches and handlers. `app` creates all controllers, and `main` runs the process and holds its lease. All
decisions are pure functions in modules named `rules`, or in the package `certs`. All other modules read caches and call
the API server. `caches` has the shared caches and recent writes, and `live` reads single objects from the API server.

If the controller is killed at any point, it reaches the same result after a restart. The controller writes each intent
into the object before it acts, and derives all names from the object. The package must not import the webhook or the
extender. Start reading at `app.Controller`, then read `job.rules.policies`.
"""

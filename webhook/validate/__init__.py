"""Validations: everything that is wrong with an object, with the field's path, its value, and what would be right.

A module per kind has the handler: `workload` (batch Jobs, JobSets, StatefulSets, …), `trainjob`, `trainingruntime`,
`podgroup`, `queue`, `command`, `hypernode`, `jobflow`, `cronjob`, `pod` (with the checks of all pod templates), and
`volcano_job/` for the kind with most rules. Start reading at `podgroup`, or at `volcano_job.job`.

Promises to look at everything before it answers, to refuse early what would fail late and unseen (the pods of a Job),
and to let an object go that is being deleted. It does no I/O of its own, and must not import webhook.mutate.
"""

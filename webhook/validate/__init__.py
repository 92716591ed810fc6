"""Validations: everything that is wrong with an object, with the field's path, its value, and what would be right.

A module per kind has the handler: `workload` (batch Jobs, JobSets, StatefulSets, …), `trainjob` (and runtimes),
`podgroup`, `queue`, `command`, `hypernode`, `jobtemplates` (JobFlows, CronJobs), `pod` (with the checks of all pod
templates), and `volcano_job/` for the kind with most rules. `edits` has what only changes of a workload can be wrong
in, and their scale. `trials` asks the API server about pods. Start at `podgroup`, or at `volcano_job.job`.

Promises to look at everything before it answers, to refuse early what would fail late and unseen (the pods of a Job).
Promises to let an object go that is being deleted. It does no I/O of its own, and must not import webhook.mutate.
"""

from webhook.validate import command, hypernode, jobtemplates, namespace, pod, podgroup, queue, trainjob, workload

__all__ = ["command", "hypernode", "jobtemplates", "namespace", "pod", "podgroup", "queue", "trainjob", "workload"]

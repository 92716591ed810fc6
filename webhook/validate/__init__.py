"""Validations, which find all errors in an object; each error has the field's path, its value, and the valid values.

Each kind has a module with its handler: `workload` (batch Jobs, JobSets, StatefulSets, …), `trainjob` (and runtimes),
`podgroup`, `queue`, `command`, `hypernode`, `jobtemplates` (JobFlows, CronJobs), `pod` (with the checks of all pod
templates), and `volcano_job/` for the kind with most rules. `edits` checks changes of existing workloads, including
their scale. `trials` checks pods by dry runs of the API server. Start reading at `podgroup` or `volcano_job.job`.

Validations report all errors at once, and refuse objects that would fail later, such as Jobs whose pods are invalid.
Validations never block the deletion of an object. The package does no I/O itself, and must not import webhook.mutate.
"""

from webhook.validate import command, hypernode, jobtemplates, namespace, pod, podgroup, queue, trainjob, workload

__all__ = ["command", "hypernode", "jobtemplates", "namespace", "pod", "podgroup", "queue", "trainjob", "workload"]

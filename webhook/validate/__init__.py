"""Validations: all errors in an object, each with the field's path, its value, and the valid values.

Each kind has a module with its handler: `workload` (batch Jobs, JobSets, StatefulSets, …), `trainjob` (and runtimes),
`podgroup`, `queue`, `command`, `hypernode`, `jobtemplates` (JobFlows, CronJobs), `pod` (with the checks of all pod
templates), and `volcano_job/` for the kind with most rules. `edits` checks changes of workloads and of their scale.
`trials` checks pods by dry runs of the API server. Readers of the code start with `podgroup` or `volcano_job.job`.

Validations check everything before they respond, refuse objects that would otherwise fail later (such as Jobs whose
pods are invalid), and never block the deletion of an object. The package does no I/O itself, and must not import
webhook.mutate.
"""

from webhook.validate import command, hypernode, jobtemplates, namespace, pod, podgroup, queue, trainjob, workload

__all__ = ["command", "hypernode", "jobtemplates", "namespace", "pod", "podgroup", "queue", "trainjob", "workload"]

"""Mutations: Muster's additions to objects before they are validated and stored.

Each kind has a module with its handler: `pod`, `workload` (batch Jobs, Deployments, JobSets, …), `job` (of Volcano),
`queues` (and PodGroups) and `trainjob`. Start reading at `pod`, which lists the steps for a pod. The modules of these
steps are `optin` (whether the pod opts in, and to which queue), `resourcegroup`, `scheduling` (scheduler, gang, gates,
markers, shared GPUs) and `shape` (environment of a framework).

Mutations are functions of the object and of look-ups. Mutations only add missing values, so a second review changes
nothing, and give a reason for each addition. The package does no I/O itself, and must not import webhook.validate.
"""

from webhook.mutate import creator, job, pod, queues, trainjob, workload

__all__ = ["creator", "job", "pod", "queues", "trainjob", "workload"]

"""Muster's Job for the pods of a TrainJob that run together, and a batch/v1 Job for each initializer."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from muster.api import names
from muster.api.fields import FieldError, Findings
from muster.api.kubernetes import core
from muster.api.limits import whole_number
from muster.api.muster.pools import is_musters
from muster.api.volcano.batch import JOBS
from muster.resources.runtime import restart_budget
from muster.runtime.info import Info
from muster.runtime.plan import Component, Plan, PodSetPlan, metadata_of
from muster.runtime.plugins.jobset import claims, deciding, fails_at_once, service, unmapped, with_claims
from muster.runtime.plugins.pod_groups import together
from muster.runtime.plugins.shared import errors_of
from muster.runtime.settings import ELASTIC, NETWORK_POLICY, Settings
from muster.runtime.template import planned
from muster.volcano.tasks import EVICTIONS, pod_hosts
from muster.workloads.adapter import annotation
from muster.workloads.jobset import COORDINATOR, JOB_INDEX, JOBSET_NAME, REPLICATED_JOB
from muster.workloads.kind import again

JSON = dict[str, Any]
MAX_LABEL = 63
"""Maximum length of a label's value, in characters."""
_NO_POLICY = "--disable-network-policy"


class MusterJob:
    """Plugin that builds Muster's Job for the pods that run together, and a batch/v1 Job for each initializer."""

    name = "Job"

    def validate(self, info: Info) -> Findings:
        """Reject fields that only a JobSet implements, and check the number of nodes of an elastic TrainJob."""
        if info.target != self.name:
            return Findings()
        errors = [*_check_nodes(info), *errors_of(info, lambda each: _has_policy(each.settings))]
        for each in unmapped(info.base, [pod_set.name for pod_set in together(info)], info.framework):
            message = f"must refer to a runtime whose spec.template.spec.{each.field} is {each.wanted}: {each.why}"
            errors.append(FieldError("spec.runtimeRef", message, info.runtime_name))
        return Findings(errors)

    def identify_pod_network(self, info: Info) -> None:
        """Set the pods' host names `<job>-<task>-<index>.<job>`; the rank is the index in the task."""
        if info.target != self.name:
            return
        for pod_set in info.pod_sets:
            pod_set.subdomain = info.owner.name
            pod_set.rank = annotation(names.TASK_INDEX)
            pod_set.hosts = partial(pod_hosts, info.owner.name, pod_set.name, subdomain=info.owner.name)

    def build(self, plan: Plan) -> Iterable[Component]:
        """Yield the PersistentVolumeClaims, then the initializers in the order of their dependencies, then the Job."""
        if plan.target != self.name or plan.gang is None:
            return
        yield from claims(plan, self.name)
        templates = {job["name"]: job["template"] for job in plan.base.get("replicatedJobs") or []}
        members = [pod_set for pod_set in plan.pod_sets if pod_set.name in plan.gang.pod_sets]
        before = [pod_set for pod_set in plan.pod_sets if pod_set.count and pod_set not in members]
        stages = _stages(before)
        for pod_set in before:
            yield Component(
                _batch_job(plan, pod_set, templates[pod_set.name]), self.name, stage=1 + stages[pod_set.name]
            )
        manifest = {
            "apiVersion": JOBS.api_version,
            "kind": JOBS.kind,
            "metadata": metadata_of(plan, plan.owner.name),
            "spec": _job_spec(plan, members, templates),
        }
        yield Component(manifest, self.name, stage=1 + max(stages.values(), default=-1) + 1)

    def watched(self) -> Iterable[str]:
        """Return both kinds of Jobs: Muster's Job for the training pods, and batch/v1 Jobs for initializers."""
        return [each.full_name for each in (JOBS, core.INDEXED_JOBS)]


def _check_nodes(info: Info) -> Iterable[FieldError]:
    """Check that `muster.dev/num-nodes` is a number within the bounds of the elastic training."""
    text = info.train_job.metadata.annotations.get(names.NUM_NODES) if info.train_job else None
    if text is None:
        return
    path, elastic = f"metadata.annotations[{names.NUM_NODES}]", info.setting(ELASTIC)
    if elastic is None:
        fixed = f"a TrainJob with runtime {info.runtime_name} keeps its number of nodes (spec.trainer.numNodes)"
        later = f"; torchrun with the annotation {names.ELASTIC}, for example 2:6, can change it later"
        yield FieldError(path, again(fixed) + later, text, "Forbidden")
        return
    least, most = (whole_number(each.strip()) for each in (*elastic.text.split(":"), "")[:2])
    wanted = whole_number(text)
    if wanted is None or wanted < (least or 1) or (most is not None and wanted > most):
        yield FieldError(path, f"must be a number of nodes within {elastic.text} ({elastic.source})", text)


def _pods(plan: Plan, pod_set: PodSetPlan, template: Mapping[str, Any], restart: str) -> JSON:
    """Return a pod template with the labels by which Kubeflow's clients find the pods of a TrainJob's step.

    `restart` is the restart policy for a runtime that names none, because the API server's default is Always.
    """
    result = with_claims(plan, planned((template.get("spec") or {}).get("template") or {}, pod_set))
    result = {**result, "spec": {"restartPolicy": restart, **result["spec"]}}
    metadata = result.get("metadata") or {}
    labels = {JOBSET_NAME: plan.owner.name, REPLICATED_JOB: pod_set.name, JOB_INDEX: "0"}
    annotations = {COORDINATOR: host} if (host := _coordinator(plan)) else {}
    return {
        **result,
        "metadata": {
            **metadata,
            "labels": {**(metadata.get("labels") or {}), **labels, **(annotations if len(host) <= MAX_LABEL else {})},
            **({"annotations": {**(metadata.get("annotations") or {}), **annotations}} if annotations else {}),
        },
    }


def _coordinator(plan: Plan) -> str:
    """Return the host name of the pod that a JobSet's `coordinator` names; "" if there is no such pod."""
    wanted = plan.base.get("coordinator") or {}
    pod_set = plan.pod_set(wanted.get("replicatedJob", ""))
    if pod_set is None:
        return ""
    size = pod_set.count // pod_set.jobs
    index = int(wanted.get("jobIndex") or 0) * size + int(wanted.get("podIndex") or 0)
    return pod_set.endpoints[index] if index < pod_set.count else ""


def _stages(before: list[PodSetPlan]) -> dict[str, int]:
    """Return the stage of each pod set, which is the length of its chain of dependencies on earlier pod sets."""
    stages: dict[str, int] = {}
    for pod_set in before:
        stages[pod_set.name] = max((stages[name] + 1 for name in pod_set.after if name in stages), default=0)
    return stages


def _batch_job(plan: Plan, pod_set: PodSetPlan, template: Mapping[str, Any]) -> JSON:
    """Return an Indexed Job, named as JobSet would name it; each of its pods waits individually in the gang's queue."""
    spec = template.get("spec") or {}
    pods = _pods(plan, pod_set, template, "OnFailure")  # the default of a JobSet; the Job's backoffLimit ends the Job
    queue = (plan.gang.details if plan.gang else {}).get("queue") or names.DEFAULT_QUEUE
    if is_musters(pods["spec"].get("schedulerName") or names.SCHEDULER):
        pods["metadata"]["labels"] = {names.QUEUE: queue, **pods["metadata"]["labels"]}
    return {
        "apiVersion": core.INDEXED_JOBS.api_version,
        "kind": core.INDEXED_JOBS.kind,
        "metadata": metadata_of(plan, f"{plan.owner.name}-{pod_set.name}-0"),
        "spec": {
            **spec,
            "completionMode": "Indexed",
            "parallelism": pod_set.count,
            "completions": pod_set.count,
            "template": pods,
            **({"suspend": True} if plan.suspend else {}),
        },
    }


def _job_spec(plan: Plan, members: list[PodSetPlan], templates: Mapping[str, JSON]) -> JSON:
    gang = plan.gang
    details = gang.details if gang else {}
    restarts = int((plan.base.get("failurePolicy") or {}).get("maxRestarts") or 0)
    restarted = restarts or restart_budget(plan.annotations) is not None
    failed = {"event": "PodFailed", "action": "RestartJob" if restarted else "TerminateJob"}
    spec: JSON = {
        "minAvailable": gang.minimum if gang else 0,
        "queue": details.get("queue") or names.DEFAULT_QUEUE,
        "schedulerName": names.SCHEDULER,
        "plugins": _plugins(plan),
        "policies": [{"event": "PodEvicted", "action": "RestartJob"}, failed],
        "tasks": [_task(plan, pod_set, members, templates[pod_set.name]) for pod_set in members],
    }
    # maxRetry also counts the restart that fails the Job. Without restarts, only evictions are retried: a gang that is
    # evicted for other gangs, or whose node is drained, has not failed. Only a budget limits such retries.
    spec["maxRetry"] = restarts + 1 if restarts else EVICTIONS
    for key in ("networkTopology", "priorityClassName"):
        if details.get(key):
            spec[key] = details[key]
    ttl_s = plan.base.get("ttlSecondsAfterFinished")
    return spec if ttl_s is None else {**spec, "ttlSecondsAfterFinished": ttl_s}


def _plugins(plan: Plan) -> dict[str, list[str]]:
    """Return plugin svc with its flags; empty if the runtime disables host names."""
    plugins = service(plan.base)
    return plugins if _has_policy(plan.settings) else {name: [*flags, _NO_POLICY] for name, flags in plugins.items()}


def _has_policy(settings: Settings) -> bool:
    """Return True if plugin svc should create a NetworkPolicy, which blocks traffic from pods of other jobs.

    Raises InvalidFieldError for a text that is not a boolean.
    """
    setting = settings.get(NETWORK_POLICY)
    return setting is None or setting.is_true


def _task(plan: Plan, pod_set: PodSetPlan, members: list[PodSetPlan], template: JSON) -> JSON:
    there = {each.name for each in members}
    waits = [name for name in pod_set.after if name in there]
    pods = _pods(plan, pod_set, template, "Never")  # policies react to a failed pod; container restarts are not counted
    task: JSON = {
        "name": pod_set.name,
        "replicas": pod_set.count,
        "minAvailable": 0 if waits else pod_set.count,
        "template": {**pods, "spec": {key: value for key, value in pods["spec"].items() if key != "subdomain"}},
    }
    if waits:
        task["dependsOn"] = {"name": waits}
    policies = []
    if fails_at_once(plan.base, pod_set.name):
        policies.append({"event": "PodFailed", "action": "TerminateJob"})
    if pod_set.name in _deciding(plan, members):
        policies.append({"event": "TaskCompleted", "action": "CompleteJob"})
    return {**task, "policies": policies} if policies else task


def _deciding(plan: Plan, members: list[PodSetPlan]) -> list[str]:
    """Return the pod sets, any of which completes the Job when it is complete; empty if all must be complete."""
    launchers = [pod_set.name for pod_set in members if pod_set.role == "launcher"]
    if plan.framework == "mpi" and not (plan.base.get("successPolicy") or {}).get("targetReplicatedJobs"):
        return launchers if len(launchers) == 1 else []  # sshd never ends by itself
    return deciding(plan.base, [pod_set.name for pod_set in members])

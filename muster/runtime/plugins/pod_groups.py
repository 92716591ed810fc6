"""Gangs of TrainJobs: the pods that start together, their minimum number, and the PodGroup."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from muster.api import names
from muster.api.fields import FieldError, Findings
from muster.api.kubernetes.meta import ObjectMeta, OwnerReference
from muster.api.muster.pools import is_musters
from muster.api.volcano.scheduling import PodGroupSpec
from muster.resources.vector import PODS, Vector, add, scale, to_quantities
from muster.runtime.info import Info, PodSet
from muster.runtime.plan import Component, GangShape, Plan, owned
from muster.runtime.settings import ELASTIC
from muster.volcano.podgroup import new_group
from muster.workloads.adapter import needed

JOBSET = "JobSet"


class Volcano:
    """Plugin that makes a TrainJob a gang with a PodGroup of scheduling.volcano.sh, which Muster also uses.

    Muster's Jobs are always gangs.
    """

    name = "Volcano"

    def validate(self, info: Info) -> Findings:
        """Reject two pod-group policies at once, and an empty queue name."""
        findings = Findings()
        policy = info.runtime.spec.pod_group_policy if info.runtime else None
        if policy and policy.volcano and policy.coscheduling:
            message = "must refer to a runtime with one podGroupPolicy, either volcano or coscheduling"
            findings.errors.append(FieldError("spec.runtimeRef", message, info.runtime_name))
        if policy and policy.volcano and info.annotations.get(names.VOLCANO_QUEUE) == "":
            message = f"must refer to a runtime whose annotation {names.VOLCANO_QUEUE} is not empty"
            findings.errors.append(FieldError("spec.runtimeRef", message, info.runtime_name))
        classes = _priority_classes(info)
        if len(set(classes)) > 1:
            several = f"its pods have the PriorityClasses {', '.join(classes)}"
            message = f"{info.runtime_name}: {several}; the gang has the class of the last job, {classes[-1]}"
            findings.warnings.append(f"spec.runtimeRef: {message}")
        return findings

    def enforce_pod_group_policy(self, info: Info) -> None:
        """Set the gang of the plan; if a JobSet creates the pods, mark the members by an annotation."""
        policy = info.runtime.spec.pod_group_policy if info.runtime else None
        wanted = policy.volcano if policy else None
        if policy and policy.coscheduling and info.target == JOBSET:
            return
        classes = _priority_classes(info)
        # the PriorityClass of the last pod set, as clients expect
        details: dict[str, Any] = {"queue": queue_of(info), "priorityClassName": classes[-1] if classes else ""}
        if wanted and wanted.network_topology:
            topology = wanted.network_topology
            details["networkTopology"] = {"mode": topology.mode, "highestTierAllowed": topology.highest_tier_allowed}
        info.gang = gang(info, self.name, details)
        if info.target == JOBSET:
            _mark(info, str(details["queue"]))

    def build(self, plan: Plan) -> Iterable[Component]:
        """Yield the PodGroup, unless Muster's Job creates the pods: the controller creates the PodGroup of a Job."""
        if plan.target != JOBSET or plan.gang is None or plan.gang.plugin != self.name:
            return
        details = {key: value for key, value in plan.gang.details.items() if value}
        keys, owner = (*names.GANG_KEYS, names.ELASTIC, names.CREATED_BY), plan.owner
        about = {key: plan.annotations[key] for key in keys if key in plan.annotations}
        meta = ObjectMeta(name=owner.name, namespace=owner.namespace, annotations=about)
        group = new_group(meta, PodGroupSpec(), "", msgspec.convert(owner.reference(), OwnerReference))
        manifest = msgspec.to_builtins(group)
        del manifest["status"]  # the planner writes the status
        # defaults too: the controller writes them over other values
        manifest["spec"] = {"minMember": plan.gang.minimum, "minResources": _quantities(plan), **details}
        yield Component(manifest, self.name)

    def watched(self) -> Iterable[str]:
        """Return the name of the kind PodGroup."""
        return ["podgroups.scheduling.volcano.sh"]


class CoScheduling:
    """Plugin that makes a TrainJob a gang with a PodGroup of the scheduler-plugins project."""

    name = "CoScheduling"
    api_version = "scheduling.x-k8s.io/v1alpha1"

    def enforce_pod_group_policy(self, info: Info) -> None:
        """Mark the members of the gang by a label."""
        policy = info.runtime.spec.pod_group_policy if info.runtime else None
        if policy is None or policy.coscheduling is None or info.target != JOBSET:
            return
        timeout_s = policy.coscheduling.schedule_timeout_seconds
        info.gang = gang(info, self.name, {"scheduleTimeoutSeconds": timeout_s})
        for pod_set in members(info):
            pod_set.labels[names.COSCHEDULING_GROUP] = info.owner.name

    def build(self, plan: Plan) -> Iterable[Component]:
        """Yield the PodGroup if this plugin has set the gang."""
        if plan.gang is None or plan.gang.plugin != self.name:
            return
        spec = {"minMember": plan.gang.minimum, "minResources": _quantities(plan), **plan.gang.details}
        metadata = owned(plan.owner, plan.owner.name)
        manifest = {"apiVersion": self.api_version, "kind": "PodGroup", "metadata": metadata, "spec": spec}
        yield Component(manifest, self.name)

    def watched(self) -> Iterable[str]:
        """Return the name of the kind PodGroup."""
        return ["podgroups.scheduling.x-k8s.io"]


def queue_of(info: Info) -> str:
    """Return the queue named by a label or annotation of the TrainJob, else of the runtime, else the default queue."""
    meta = info.train_job.metadata if info.train_job else None
    return (
        (meta and (meta.labels.get(names.QUEUE) or meta.annotations.get(names.VOLCANO_QUEUE)))
        or info.annotations.get(names.VOLCANO_QUEUE)
        or info.labels.get(names.QUEUE)
        or names.DEFAULT_QUEUE
    )


def _priority_classes(info: Info) -> list[str]:
    """Return the PriorityClasses of the gang's members, in the order of the pod sets."""
    return [each.spec.priority_class_name for each in members(info) if each.spec.priority_class_name]


def _mark(info: Info, queue: str) -> None:
    """Add the gang's name and queue to the pods of a JobSet, and the queue to the pods of initializers."""
    for pod_set in members(info):
        pod_set.annotations[names.GROUP_NAME] = info.owner.name
    for pod_set in info.pod_sets:
        if is_musters(pod_set.spec.scheduler_name or names.SCHEDULER):
            pod_set.labels[names.QUEUE] = queue


def _quantities(plan: Plan) -> dict[str, str]:
    resources = plan.gang.resources if plan.gang else {}
    return to_quantities({name: amount for name, amount in resources.items() if name != PODS})


def members(info: Info) -> list[PodSet]:
    """Return the pod sets whose pods start together."""
    return [pod_set for pod_set in together(info) if pod_set.count]


def together(info: Info) -> list[PodSet]:
    """Return the pod sets of the gang's members, including pod sets that currently have no pods.

    The result excludes pod sets that must be complete before other pod sets begin.
    """
    before = {name for pod_set in info.pod_sets for name, status in pod_set.after.items() if status == "Complete"}
    initializers = {"dataset-initializer", "model-initializer"}
    return [pod_set for pod_set in info.pod_sets if pod_set.role not in initializers and pod_set.name not in before]


def gang(info: Info, plugin: str, details: Mapping[str, Any] | None = None) -> GangShape:
    """Return the gang of a workload.

    Pods that are created only when other pods are ready do not count, because the gang would wait for them and never
    start. An elastic pod set counts with its minimum. Limits replace missing requests.
    """
    inside, elastic = members(info), info.setting(ELASTIC)
    there = {pod_set.name for pod_set in inside}
    minimum, resources = 0, Vector()
    for pod_set in inside:
        if not any(name in there for name in pod_set.after):
            count = needed(pod_set.count, elastic.text if elastic and pod_set.role == "trainer" else None)
            minimum += count
            resources = add(resources, scale(pod_set.requests, count))
    return GangShape(plugin, tuple(pod_set.name for pod_set in inside), minimum, resources, details or {})

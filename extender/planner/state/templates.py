"""Pod templates of Volcano Jobs: one pod class per task before the pods exist, cached until the Job changes.

The state keeps only the fields of a Job that planning uses, up to a limit (`planned_job`).
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec.structs import replace

from extender.planner import reasons
from extender.planner.state.amounts import discard
from extender.planner.state.devicetable import ClaimRef, DeviceTable, PodClaims, claim_refs
from extender.planner.state.podclass import ClassTable, PodClass
from muster.api.kubernetes.core import Container, ContainerPort, PodSpec
from muster.api.limits import TEMPLATE_BYTES, LimitError
from muster.api.muster.gang import other_gates
from muster.api.volcano.batch import Job, TaskSpec
from muster.resources import topology
from muster.resources.planned import planned_template
from muster.resources.runtime import UNKNOWN, Runtime, restart_budget, runtime_of
from muster.resources.topology import PodTopology
from muster.volcano.manifests import claim_names
from muster.volcano.plugins import registry
from muster.volcano.pods import task_labels
from muster.volcano.tasks import EVICTIONS, max_retry
from muster.workloads.table import PART_LABELS

UNREADABLE = "unreadable"
"""Key of the error of a template that cannot be parsed, which is the reason to exclude the gang."""


@dataclass(slots=True)
class Template:
    """The template of one task of a Job."""

    task: TaskSpec
    namespace: str
    labels: dict[str, str]
    """Labels of every pod of the task: the labels of its template, and the labels that the controller adds."""
    cls: PodClass
    other_gates: tuple[str, ...] = ()
    claims: tuple[ClaimRef, ...] = ()
    """Device claims of the task's pods; claims that are created separately for each pod have no name yet."""
    runtime: Runtime = UNKNOWN
    topology: PodTopology | None = None
    priority_class: str = ""
    """PriorityClass of the task's pods: the template's PriorityClass, otherwise the Job's PriorityClass."""


class Templates:
    """Templates of each Job, created when they are first read."""

    def __init__(self, classes: ClassTable, devices: DeviceTable) -> None:
        self._classes = classes
        self._devices = devices
        self._known: dict[str, list[Template]] = {}
        self.in_namespace: dict[str, set[str]] = {}
        """Maps a namespace to the UIDs of Jobs whose templates have been read."""
        self._users: dict[str, set[str]] = {}
        """Maps a claim or claim template to the UIDs of the Jobs whose templates name it."""
        self._refused: dict[str, str] = {}
        """Maps the UID of a Job to the reason why its templates are not read."""

    def templates_of(self, job: Job) -> list[Template]:
        """Return the templates of a Job; after a LimitError, they are not read again until the Job changes."""
        uid = job.metadata.uid
        known = self._known.get(uid)
        if known is not None:
            return known
        if (why := self._refused.get(uid)) is not None:
            raise LimitError(why)
        try:
            known = self._known[uid] = [self._template(job, task) for task in job.spec.tasks]
        except LimitError as error:
            self._refused[uid] = str(error)
            raise
        self.in_namespace.setdefault(job.metadata.namespace, set()).add(uid)
        for key in _named(known):
            self._users.setdefault(key, set()).add(uid)
        return known

    def forget(self, job: Job) -> None:
        """Forget the templates of a Job that has changed or is gone."""
        uid, namespace = job.metadata.uid, job.metadata.namespace
        self._refused.pop(uid, None)
        for key in _named(self._known.pop(uid, [])):
            discard(self._users, key, uid)
        discard(self.in_namespace, namespace, uid)

    def known(self, uid: str) -> list[Template]:
        """Return the templates of a Job; empty if the templates have not been read."""
        return self._known.get(uid, [])

    def equip_again(self, keys: Collection[str] | None = None) -> list[str]:
        """Update the device needs of templates with these claims (None: all claims); return the UIDs of their Jobs."""
        concerned = self._known.keys() if keys is None else {uid for key in keys for uid in self._users.get(key, ())}
        changed = []
        for uid in concerned:
            for template in self._known[uid]:
                cls = self._equipped(template.cls, template.claims)
                if cls is not template.cls:
                    template.cls = cls
                    changed.append(uid)
        return changed

    def _equipped(self, cls: PodClass, claims: tuple[ClaimRef, ...]) -> PodClass:
        return self._classes.equipped(cls, self._devices.needs(PodClaims(refs=claims), cls.asked))

    def _template(self, job: Job, task: TaskSpec) -> Template:
        if UNREADABLE in task.template:
            raise LimitError(task.template[UNREADABLE])
        spec = _as_made(msgspec.convert(task.template.get("spec") or {}, PodSpec), job, task)
        namespace = job.metadata.namespace
        meta = task.template.get("metadata") or {}
        labels = {**(meta.get("labels") or {}), **task_labels(job, task)}
        annotations = meta.get("annotations") or {}
        claims = claim_refs(spec, namespace)
        cls = self._classes.of_spec(spec, namespace=namespace, labels=labels, annotations=annotations)
        cls = self._equipped(cls, claims)
        runtime = runtime_of(annotations, spec.active_deadline_seconds)
        near = topology.of_pods(annotations, labels, PART_LABELS)
        priority = spec.priority_class_name or job.spec.priority_class_name
        return Template(task, namespace, labels, cls, other_gates(spec), claims, runtime, near, priority)


def _named(templates: list[Template]) -> set[str]:
    return {key for template in templates for ref in template.claims for key in (ref.key, ref.template) if key}


def _as_made(spec: PodSpec, job: Job, task: TaskSpec) -> PodSpec:
    """Return the pod spec with the host ports and volume claims that the controller adds when it creates pods."""
    opened = registry.ports(job, task) if spec.host_network else []
    ports = [ContainerPort(container_port=port) for port in opened]
    volumes = [{"persistentVolumeClaim": {"claimName": name}} for name in claim_names(job)]
    if not ports and not volumes:
        return spec
    containers = [*spec.containers, Container(ports=ports)] if ports else spec.containers
    return replace(spec, containers=containers, volumes=[*spec.volumes, *volumes])


def planned_job(job: Job) -> Job:
    """Return a copy of a Job whose templates contain only the parts that planning uses."""
    tasks = [replace(task, template=_planned_or_reason(task.template)) for task in job.spec.tasks]
    volumes = [replace(volume, volume_claim=None) for volume in job.spec.volumes]
    return replace(job, spec=replace(job.spec, tasks=tasks, volumes=volumes))


def restarts_whole(job: Job) -> bool:
    """Return True if a policy of the Job restarts the whole Job after an eviction, as in a TrainJob's Job."""
    policies = (policy for policy in job.spec.policies if policy.action == "RestartJob")
    return any({policy.event, *policy.events} & {"PodEvicted", "*"} for policy in policies)


def spends_retries(job: Job) -> bool:
    """Return True if a restart after an eviction uses up one of the Job's limited retries.

    A Job with a restart budget counts evictions separately. The Job of a TrainJob that does not restart after failures
    has enough retries for any number of evictions.
    """
    return restart_budget(job.metadata.annotations) is None and max_retry(job.spec) < EVICTIONS


def _planned_or_reason(template: dict[str, Any]) -> dict[str, Any]:
    if UNREADABLE in template:
        return {UNREADABLE: str(template[UNREADABLE])[: reasons.exclusions.SHOWN_CHARS]}
    try:
        planned = planned_template(template)
    except (msgspec.ValidationError, LimitError) as error:
        return {UNREADABLE: reasons.exclusions.error_text(error)}
    if (size := planned.size_bytes) > TEMPLATE_BYTES.value:
        over = reasons.exclusions.over_limit(what=reasons.exclusions.TEMPLATE, value=size, limit=TEMPLATE_BYTES)
        return {UNREADABLE: reasons.exclusions.error_text(LimitError(over))}
    result: dict[str, Any] = msgspec.to_builtins(planned)
    return result

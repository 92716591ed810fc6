"""What the pods of Volcano Jobs will be, before they exist: one class per task, kept until the job changes."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

import msgspec

from extender.planner.state.devicetable import ClaimRef, DeviceTable, PodClaims, claim_refs
from extender.planner.state.podclass import ClassTable, PodClass
from muster.api.kubernetes.core import Container, ContainerPort, PodSpec
from muster.api.muster.gang import other_gates
from muster.api.volcano.batch import Job, TaskSpec
from muster.resources import topology
from muster.resources.runtime import UNKNOWN, Runtime, runtime_of
from muster.resources.topology import PodTopology
from muster.volcano.manifests import claim_names
from muster.volcano.plugins import registry
from muster.volcano.pods import task_labels


@dataclass(slots=True)
class Template:
    """One task of a job."""

    task: TaskSpec
    namespace: str
    labels: dict[str, str]
    """Those of the template, and those that every pod of a job gets; not those that tell its pods apart."""
    cls: PodClass
    other_gates: tuple[str, ...] = ()
    """Scheduling gates that are not Muster's."""
    claims: tuple[ClaimRef, ...] = ()
    """Their claims to devices; what is made for each pod has no name yet."""
    runtime: Runtime = UNKNOWN
    """How long its pods are expected to run, as far as it says so."""
    topology: PodTopology | None = None
    """How near to each other its pods are to be, as far as it says so."""


class Templates:
    """The tasks of every job that was asked for."""

    def __init__(self, classes: ClassTable, devices: DeviceTable) -> None:
        self._classes = classes
        self._devices = devices
        self._known: dict[str, list[Template]] = {}

    def of(self, job: Job) -> list[Template]:
        """The tasks of a job, each with the class that its pods will be of; made once."""
        known = self._known.get(job.metadata.uid)
        if known is None:
            known = self._known[job.metadata.uid] = [self._template(job, task) for task in job.spec.tasks]
        return known

    def forget(self, uid: str) -> None:
        """Forgets the tasks of a job that changed or is gone."""
        self._known.pop(uid, None)

    def match_again(self, meant: Callable[[str, dict[str, str]], bool]) -> list[str]:
        """Looks again at the demands that such templates meet, by namespace and labels; UIDs of jobs that changed."""
        changed = []
        for uid, templates in self._known.items():
            for template in templates:
                if meant(template.namespace, template.labels):
                    cls = self._classes.matched_again(template.cls, template.namespace, template.labels)
                    if cls is not template.cls:
                        template.cls = cls
                        changed.append(uid)
        return changed

    def equip_again(self, keys: Collection[str] | None = None) -> list[str]:
        """Looks again at what claims come to, of these claims and claim templates or of all; UIDs of changed jobs."""
        changed = []
        for uid, templates in self._known.items():
            for template in templates:
                if keys is None or any(ref.key in keys or ref.template in keys for ref in template.claims):
                    cls = self._equipped(template.cls, template.claims)
                    if cls is not template.cls:
                        template.cls = cls
                        changed.append(uid)
        return changed

    def _equipped(self, cls: PodClass, claims: tuple[ClaimRef, ...]) -> PodClass:
        if not (cls.needs or self._devices.concerns(claims, cls.asked)):
            return cls
        return self._classes.equipped(cls, self._devices.needs(PodClaims(refs=claims), cls.asked))

    def _template(self, job: Job, task: TaskSpec) -> Template:
        spec = _as_made(msgspec.convert(task.template.get("spec") or {}, PodSpec), job, task)
        namespace = job.metadata.namespace
        meta = task.template.get("metadata") or {}
        labels = {**(meta.get("labels") or {}), **task_labels(job, task)}
        annotations = meta.get("annotations") or {}
        claims = claim_refs(spec, namespace)
        cls = self._classes.of_spec(spec, namespace=namespace, labels=labels, annotations=annotations)
        cls = self._equipped(cls, claims)
        runtime = runtime_of(annotations, spec.active_deadline_seconds)
        near = topology.of_pods(annotations, labels)
        return Template(task, namespace, labels, cls, other_gates(spec), claims, runtime, near)


def _as_made(spec: PodSpec, job: Job, task: TaskSpec) -> PodSpec:
    """The pod as the controller will make it, as far as it matters where it runs: ports of the node, and claims."""
    opened = registry.ports(job, task) if spec.host_network else []
    ports = [ContainerPort(container_port=port) for port in opened]
    volumes = [{"persistentVolumeClaim": {"claimName": name}} for name in claim_names(job)]
    if not ports and not volumes:
        return spec
    containers = [*spec.containers, Container(ports=ports)] if ports else spec.containers
    return msgspec.structs.replace(spec, containers=containers, volumes=[*spec.volumes, *volumes])

"""The objects that exist shortly after the submission of manifests: admitted workloads, pods and PodGroups.

`admission` admits the manifests; pods and PodGroups are created as the controllers would create them. New objects get
unique names and UIDs, so that the planner can use them together with existing objects.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count, islice
from typing import Any

import msgspec

from muster.api import names
from muster.api.base import Resource
from muster.api.grammar import listed
from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.kubernetes.core import PODS, Namespace, Pod
from muster.api.kubernetes.meta import Object, ObjectMeta, format_time
from muster.api.kubernetes.scheduling import NATIVE_POD_GROUPS, NativePodGroup
from muster.api.limits import PODS as PODS_LIMIT
from muster.api.muster.gang import native_gang
from muster.api.unchecked import mapping, value_at
from muster.api.volcano.batch import JOBS, Job
from muster.api.volcano.flow import JOB_FLOWS, JOB_TEMPLATES, JobFlow, JobTemplate
from muster.api.volcano.scheduling import POD_GROUPS, PodGroup, PodGroupStatus, Queue
from muster.runtime import registry
from muster.volcano.flows import targets
from muster.volcano.podgroup import pod_group as group_of_job
from muster.workloads.flow_jobs import job_manifest
from muster.workloads.kind import Samples, WorkloadKind, pod_templates
from muster.workloads.podgroup import group_to_make, inherited
from muster.workloads.podgroup import pod_group as group_of_pod
from muster.workloads.table import gang_of, gang_rules, kind_in, world_of
from muster.workloads.verbs import is_held
from webhook.config import ResourceGroup
from webhook.offline.admission import OfflineAdmission, components
from webhook.offline.lookups import Documents
from webhook.offline.manifests import JSON, ManifestError

Item = tuple[Resource[Any], Object]
UID = "simulated"


class Submission:
    """Submitted manifests; `items` are the resulting objects, `ignored` describes objects that Muster does not place.

    Suspended workloads are simulated as if they had been released; `released` contains their names. `now` is seconds
    since the epoch. `namespaces` and `queues` are objects in the cluster, whose labels determine opt-in and node pools.
    `groups` are the webhook's resource groups, and `user` submits the manifests. `sources` are runtimes in addition to
    Muster's own, and JobTemplates. `most_pods` limits the total number of pods outside Volcano Jobs, because each of
    these pods is reviewed individually.
    """

    def __init__(
        self,
        namespace: str,
        now: float,
        priorities: Mapping[str, int],
        namespaces: Iterable[Namespace] = (),
        queues: Iterable[Queue] = (),
        *,
        groups: Sequence[ResourceGroup] = (),
        user: str = "",
        sources: Iterable[JSON] = (),
        most_pods: int = PODS_LIMIT.value,
    ) -> None:
        self.items: list[Item] = []
        self.ignored: list[str] = []
        self.released: list[str] = []
        self._flows: list[tuple[str, JobFlow]] = []
        """The submitted JobFlows, each with the name of its file."""
        self._templates: list[tuple[str, JobTemplate]] = []
        self._workloads: dict[str, Object] = {}
        """Maps a UID to the owner of pods, which the planner does not know."""
        self._namespace = namespace
        self._now = now
        self._priorities = priorities
        self._numbers: Iterator[int] = count(1)
        self._most = self._left = most_pods
        known = [*sources]
        known += [{"kind": "Namespace", "metadata": msgspec.to_builtins(each.metadata)} for each in namespaces]
        known += [
            {"kind": "Queue", "metadata": msgspec.to_builtins(each.metadata), "spec": {"parent": each.spec.parent}}
            for each in queues
        ]
        self._admission = OfflineAdmission(Documents(known, namespace), registry.framework(), groups=groups, user=user)

    def add(self, objects: Iterable[JSON], file: str) -> None:
        """Add objects from `file` (a name for error messages).

        Raise ManifestError, with the problem and its location, if an object is refused.
        """
        for document in objects:
            self._read_one(file, document)

    @property
    def gangs(self) -> list[str]:
        """The keys of the submitted gangs."""
        own = [item.metadata.key for resource, item in self.items if resource is POD_GROUPS]
        native = (item.metadata for resource, item in self.items if resource is NATIVE_POD_GROUPS)
        return [*own, *(f"{meta.namespace}/{native_gang(meta.name)}" for meta in native)]

    def finish(self) -> None:
        """Add the Jobs of JobFlows and JobTemplates, and missing PodGroups, as the controllers would create them."""
        for file, job in self._flow_jobs():
            self._read_one(file, job)
        there = {item.metadata.key for resource, item in self.items if resource is POD_GROUPS}
        for _, pod in list(self.items):
            if not isinstance(pod, Pod):
                continue
            name = group_to_make(pod)
            if name and f"{pod.metadata.namespace}/{name}" not in there:
                self._group(msgspec.to_builtins(self._group_of(pod)))
                there.add(f"{pod.metadata.namespace}/{name}")
                if gang_of(pod) is None:
                    pod.metadata.annotations[names.GROUP_NAME] = name

    def _read_one(self, file: str, content: JSON) -> None:
        kind = (content.get("apiVersion", ""), content.get("kind", ""))
        meta = self._metadata(content)
        try:
            self._release(content)
            if kind == (JOBS.api_version, JOBS.kind):
                self._job(content)
            elif kind == (JOB_FLOWS.api_version, JOB_FLOWS.kind):
                self._flows.append((file, msgspec.convert(self._admitted(content), JobFlow)))
            elif kind == (JOB_TEMPLATES.api_version, JOB_TEMPLATES.kind):
                self._admission.documents.add(content)
                self._templates.append((file, msgspec.convert(self._admitted(content), JobTemplate)))
            elif kind == (POD_GROUPS.api_version, POD_GROUPS.kind):
                self._group(content)
            elif kind == (PODS.api_version, PODS.kind):
                self._pod(content)
            elif kind == (NATIVE_POD_GROUPS.api_version, NATIVE_POD_GROUPS.kind):
                self._native_group(content)
            elif kind == (TRAIN_JOBS.api_version, TRAIN_JOBS.kind):
                self._train_job(content)
            elif (row := kind_in(content)) and row.samples:
                self._workload(content, row, row.samples)
            else:
                self._admission.documents.add(content)  # a TrainJob may refer to it
                self.ignored.append(f"{kind[1] or 'an object has no kind'} {meta['name']}")
        except ValueError as error:  # msgspec.ValidationError is one
            raise ManifestError(f"{file}: {kind[1]} {meta['name']}: {error}") from error

    def _metadata(self, content: JSON) -> JSON:
        meta: JSON = content.setdefault("metadata", {})
        number = next(self._numbers)
        meta.setdefault("namespace", self._namespace)
        meta["name"] = meta.get("name") or f"{meta.get('generateName', 'unnamed-')}{number}"
        meta |= {"uid": f"{UID}-{number}", "creationTimestamp": format_time(self._now), "resourceVersion": ""}
        content.pop("status", None)
        return meta

    def _release(self, content: JSON) -> None:
        """Release a suspended workload, so that its pods are simulated."""
        kind = kind_in(content)
        stop = kind.verbs.stop if kind and kind.verbs else ()
        if kind and stop and is_held(kind, content):
            self.released.append(f"{kind.resource.kind} {content['metadata']['name']}")
            mapping(value_at(content, stop[:-1]))[stop[-1]] = False

    def _flow_jobs(self) -> Iterator[tuple[str, JSON]]:
        """Yield the first Jobs of each JobFlow, and a Job for each JobTemplate outside JobFlows, each with its file."""
        used = set[tuple[str, str]]()
        for file, flow in self._flows:
            meta, title = flow.metadata, f"{JOB_FLOWS.kind} {flow.metadata.name}"
            for step in flow.spec.flows:
                used.add((meta.namespace, step.name))
                if targets(step):
                    self.ignored.append(f"{title}, step {step.name} (it starts after {listed(targets(step))})")
                    continue
                found = self._admission.documents.find_document(JOB_TEMPLATES.kind, step.name, meta.namespace)
                if found is None:
                    raise ManifestError(f"{file}: {title}: add JobTemplate {step.name} to the manifests")
                yield file, job_manifest(flow, step, msgspec.convert(found, JobTemplate))
        for file, template in self._templates:
            meta = template.metadata
            if (meta.namespace, meta.name) not in used:
                known = {"name": meta.name, "namespace": meta.namespace}
                spec = msgspec.to_builtins(template.spec)
                yield file, {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "metadata": known, "spec": spec}

    def _job(self, content: JSON) -> None:
        job = msgspec.convert(self._admitted(content), Job)
        self.items.append((JOBS, job))
        self._group(msgspec.to_builtins(group_of_job(job, self._priorities)))

    def _train_job(self, content: JSON) -> None:
        """Add the Job that is created for a TrainJob."""
        for made in components(self._admission, self._admitted(content)):
            if (made.after["apiVersion"], made.after["kind"]) == (JOBS.api_version, JOBS.kind):
                self._metadata(made.after)
                self._job(made.after)

    def _native_group(self, content: JSON) -> None:
        group = msgspec.convert(self._admitted(content), NativePodGroup)
        self.items.append((NATIVE_POD_GROUPS, group))

    def _workload(self, content: JSON, kind: WorkloadKind, samples: Samples) -> None:
        """Add a workload, and all pods of the workload that run at the same time."""
        content = self._admitted(content)
        workload: Object = msgspec.convert(content, kind.resource.type)
        templates = [template.get("metadata") or {} for _, template in pod_templates(content, kind.templates)]
        if not any(names.QUEUE in (each.get("labels") or {}) for each in templates):
            what = f"{kind.resource.kind} {workload.metadata.name}"
            self.ignored.append(f"{what} (neither it nor its namespace has the label {names.QUEUE})")
            return
        if is_held(kind, content):
            self.ignored.append(f"{kind.resource.kind} {workload.metadata.name} (it is scaled to 0)")
            return
        self._own(workload, content)
        pods = list(islice(samples(content, every=True), self._left + 1))
        self._left -= len(pods)
        if self._left < 0:
            raise ValueError(
                f"the manifests have more than {self._most} pods, the maximum of one simulation; submit fewer"
            )
        for each in pods:
            if each.owner and each.owner["metadata"]["uid"] not in self._workloads:
                made = kind_in(each.owner)
                assert made is not None  # noqa: S101 # the table has all kinds that its kinds make
                self._own(msgspec.convert(each.owner, made.resource.type), each.owner)
            self._metadata(each.pod)
            self._pod(each.pod)

    def _own(self, workload: Object, content: JSON) -> None:
        """Record a workload as a possible owner of pods."""
        self._workloads[workload.metadata.uid] = workload
        self._admission.documents.add(content)

    def _pod(self, content: JSON) -> None:
        pod = msgspec.convert(self._admitted(content), Pod)
        pod.status.phase = "Pending"
        self.items.append((PODS, pod))

    def _group(self, content: JSON) -> None:
        group = msgspec.convert(self._admitted(content), PodGroup)
        group.metadata.uid = group.metadata.uid or f"{UID}-{next(self._numbers)}"
        group.metadata.creation_timestamp = format_time(self._now)
        group.status = PodGroupStatus(phase="Pending")
        self.items.append((POD_GROUPS, group))

    def _admitted(self, content: JSON) -> JSON:
        """Return the object as changed by admission; raise ValueError if it is refused."""
        admitted = self._admission.admit(content)
        if admitted.errors:
            raise ValueError("; ".join(f"{error.path}: {error.message}" for error in admitted.errors))
        return admitted.after

    def _group_of(self, pod: Pod) -> PodGroup:
        """Return the PodGroup that the controller would create for a pod."""
        owner = self._owner(pod.metadata)
        above = self._owner(owner.metadata) if owner else None
        world = above if world_of(pod.metadata) else None
        given = world or (above if owner and gang_rules(owner.metadata.controller) else None)
        return group_of_pod(pod, inherited(owner, given) if owner else None, world)

    def _owner(self, meta: ObjectMeta) -> Object | None:
        return self._workloads.get(meta.controller.uid) if meta.controller else None

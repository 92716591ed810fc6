"""The objects of a cluster shortly after manifests are submitted: admitted workloads with pods and PodGroups.

`admission` admits the manifests; pods and PodGroups are created as the controllers would create them. New objects get
unique names and UIDs, so that they can be combined with existing objects.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import msgspec

from muster.api import names
from muster.api.base import Resource
from muster.api.kubernetes.core import PODS, Namespace, Pod
from muster.api.kubernetes.meta import Object, format_time
from muster.api.volcano.batch import JOBS, Job
from muster.api.volcano.scheduling import POD_GROUPS, PodGroup, PodGroupStatus, Queue
from muster.runtime import registry
from muster.volcano.podgroup import pod_group as group_of_job
from muster.workloads.kind import WorkloadKind, pod_templates
from muster.workloads.podgroup import group_to_make
from muster.workloads.podgroup import pod_group as group_of_pod
from muster.workloads.table import gang_of, kind_of
from webhook.config import ResourceGroup
from webhook.offline.admission import OfflineAdmission
from webhook.offline.lookups import Documents
from webhook.offline.manifests import JSON, ManifestError

Item = tuple[Resource[Any], Object]
UID = "simulated"


class Submission:
    """Submitted manifests: `items` are the resulting objects, `ignored` the ones that are not placed.

    `now` is seconds since the epoch. The namespaces may opt in to Muster. The queues name their node pools. `groups`
    are those of the webhook, and `user` is who submits them.
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
    ) -> None:
        self.items: list[Item] = []
        self.ignored: list[str] = []
        self._workloads: dict[str, Object] = {}
        """Owners of pods by UID, which the planner does not know."""
        self._namespace = namespace
        self._now = now
        self._priorities = priorities
        self._numbers: Iterator[int] = count(1)
        known = [{"kind": "Namespace", "metadata": msgspec.to_builtins(each.metadata)} for each in namespaces]
        known += [
            {"kind": "Queue", "metadata": msgspec.to_builtins(each.metadata), "spec": {"parent": each.spec.parent}}
            for each in queues
        ]
        self._admission = OfflineAdmission(Documents(known, namespace), registry.framework(), groups=groups, user=user)

    def add(self, objects: Iterable[JSON], file: str) -> None:
        """Add objects from `file` (a name for error messages). ManifestError names the problem and its location."""
        for document in objects:
            self._read_one(file, document)

    def finish(self) -> None:
        """Add the missing PodGroups of pods, as the controller would create them."""
        there = {item.metadata.key for resource, item in self.items if resource is POD_GROUPS}
        for _, pod in list(self.items):
            if not isinstance(pod, Pod):
                continue
            name = group_to_make(pod)
            if name and f"{pod.metadata.namespace}/{name}" not in there:
                self._group(msgspec.to_builtins(group_of_pod(pod, self._owner(pod))))
                there.add(f"{pod.metadata.namespace}/{name}")
                if gang_of(pod) is None:
                    pod.metadata.annotations[names.GROUP_NAME] = name

    def _read_one(self, file: str, content: JSON) -> None:
        kind = (content.get("apiVersion", ""), content.get("kind", ""))
        meta = self._metadata(content)
        try:
            if kind == (JOBS.api_version, JOBS.kind):
                self._job(content)
            elif kind == (POD_GROUPS.api_version, POD_GROUPS.kind):
                self._group(content)
            elif kind == (PODS.api_version, PODS.kind):
                self._pod(content)
            elif (row := kind_of(*kind)) and row.running:
                self._workload(content, row, row.running)
            else:
                self.ignored.append(f"{kind[1] or 'object without a kind'} {meta['name']}")
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

    def _job(self, content: JSON) -> None:
        job = msgspec.convert(self._admitted(content), Job)
        self.items.append((JOBS, job))
        self._group(msgspec.to_builtins(group_of_job(job, self._priorities)))

    def _workload(self, content: JSON, kind: WorkloadKind, running: Callable[[JSON], Iterator[JSON]]) -> None:
        """Add a workload, and all of its pods that run at the same time."""
        content = self._admitted(content)
        workload: Object = msgspec.convert(content, kind.resource.type)
        templates = [template.get("metadata") or {} for _, template in pod_templates(content, kind.templates)]
        if not any(names.QUEUE in (each.get("labels") or {}) for each in templates):
            what = f"{kind.resource.kind} {workload.metadata.name}"
            self.ignored.append(f"{what} (neither it nor its namespace has the label {names.QUEUE})")
            return
        self._workloads[workload.metadata.uid] = workload
        self._admission.documents.add(content)
        for pod in running(content):
            self._metadata(pod)
            self._pod(pod)

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
        """Return the object as changed by admission; ValueError if it is refused."""
        admitted = self._admission.admit(content)
        if admitted.errors:
            raise ValueError("; ".join(f"{error.path}: {error.message}" for error in admitted.errors))
        return admitted.after

    def _owner(self, pod: Pod) -> Object | None:
        return self._workloads.get(pod.metadata.controller.uid) if pod.metadata.controller else None

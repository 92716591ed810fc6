"""Manifests as the cluster would have them: defaulted by the webhook's functions, grouped by the controller's.

Objects that do not exist yet get names and UIDs of their own, so that they can stand beside those that do.
"""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import click
import jsonpatch
import msgspec

from controller.job.podgroup import pod_group as group_of_job
from controller.workloads import JOB_NAME_LABEL, group_to_make
from controller.workloads import pod_group as group_of_pod
from muster.api import names
from muster.api.base import Resource
from muster.api.batch import JOBS, Job
from muster.api.core import INDEXED_JOBS, PODS, IndexedJob, Pod
from muster.api.gang import gang_of
from muster.api.meta import Object, ObjectMeta, OwnerReference, format_time
from muster.api.scheduling import POD_GROUPS, PodGroup, PodGroupStatus
from muster.cli.documents import documents
from webhook.mutate import asks
from webhook.mutate.job import defaults
from webhook.mutate.steer import steer
from webhook.mutate.workload import copy_labels
from webhook.patch import Operation, Patch
from webhook.validate.job import check

Item = tuple[Resource[Any], Object]
UID = "simulated"


@dataclass(slots=True)
class Manifests:
    """Reads files; `items` is what they make in the cluster. `now` is seconds since the epoch."""

    namespace: str
    now: float
    priorities: Mapping[str, int]
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Labels of the namespaces, which may ask for Muster."""
    items: list[Item] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    """Objects that are not placed, e.g. Services."""
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def read(self, file: str) -> None:
        """Add the objects of one file. Raises ClickException that says what is wrong and where."""
        for document in documents(file):
            self._read_one(file, document)

    def finish(self) -> None:
        """Add the PodGroups of pods that have none, as the controller makes them."""
        there = {item.metadata.key for resource, item in self.items if resource is POD_GROUPS}
        for _, pod in list(self.items):
            if not isinstance(pod, Pod):
                continue
            name = group_to_make(pod)
            if name and f"{pod.metadata.namespace}/{name}" not in there:
                self._group(group_of_pod(pod, self._owner(pod)))
                there.add(f"{pod.metadata.namespace}/{name}")
                if gang_of(pod.metadata) is None:
                    pod.metadata.annotations[names.GROUP_NAME] = name

    def _read_one(self, file: str, content: dict[str, Any]) -> None:
        kind = (content.get("apiVersion", ""), content.get("kind", ""))
        meta = self._metadata(content)
        try:
            if kind == (JOBS.api_version, JOBS.kind):
                self._job(content)
            elif kind == (INDEXED_JOBS.api_version, INDEXED_JOBS.kind):
                self._batch_job(content)
            elif kind == (POD_GROUPS.api_version, POD_GROUPS.kind):
                self._group(msgspec.convert(content, PodGroup))
            elif kind == (PODS.api_version, PODS.kind):
                self._pod(content)
            else:
                self.ignored.append(f"{kind[1] or 'object without a kind'} {meta['name']}")
        except (msgspec.ValidationError, ValueError) as error:
            raise click.ClickException(f"{file}: {kind[1]} {meta['name']}: {error}") from error

    def _metadata(self, content: dict[str, Any]) -> dict[str, Any]:
        meta: dict[str, Any] = content.setdefault("metadata", {})
        number = next(self._numbers)
        meta.setdefault("namespace", self.namespace)
        meta["name"] = meta.get("name") or f"{meta.get('generateName', 'unnamed-')}{number}"
        meta |= {"uid": f"{UID}-{number}", "creationTimestamp": format_time(self.now), "resourceVersion": ""}
        content.pop("status", None)
        return meta

    def _job(self, content: dict[str, Any]) -> None:
        job = msgspec.convert(_applied(content, defaults(msgspec.convert(content, Job), content)), Job)
        errors = check(job)
        if errors:
            raise ValueError("; ".join(f"{error.path}: {error.message}" for error in errors))
        self.items.append((JOBS, job))
        self._group(group_of_job(job, self.priorities))

    def _batch_job(self, content: dict[str, Any]) -> None:
        """Its pods, as the Job controller makes them, behind the gate."""
        inherited = self.namespaces.get(content["metadata"]["namespace"], {})
        content = _applied(content, copy_labels(content, inherited=inherited))
        job = msgspec.convert(content, IndexedJob)
        if names.QUEUE not in (content["spec"]["template"].get("metadata") or {}).get("labels", {}):
            self.ignored.append(f"Job {job.metadata.name} (neither it nor its namespace has the label {names.QUEUE})")
            return
        self.items.append((INDEXED_JOBS, job))
        parallelism = 1 if job.spec.parallelism is None else job.spec.parallelism
        meta = job.metadata
        owner = OwnerReference(api_version="batch/v1", kind="Job", name=meta.name, uid=meta.uid, controller=True)
        for index in range(min(parallelism, job.spec.completions or parallelism)):
            template = deepcopy(job.spec.template)
            labels = {**(template.get("metadata") or {}).get("labels", {}), JOB_NAME_LABEL: meta.name}
            annotations = (template.get("metadata") or {}).get("annotations", {})
            if job.spec.completion_mode == "Indexed":
                annotations = {**annotations, names.COMPLETION_INDEX: str(index)}
            pod = {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": f"{meta.name}-{index}",
                    "namespace": meta.namespace,
                    "labels": labels,
                    "annotations": annotations,
                    "ownerReferences": [msgspec.to_builtins(owner)],
                },
                "spec": template.get("spec") or {},
            }
            self._metadata(pod)
            self._pod(pod)

    def _pod(self, content: dict[str, Any]) -> None:
        meta = msgspec.convert(content["metadata"], ObjectMeta)
        asked = asks.by_itself(meta.labels)
        if not asks.decided(meta.labels) and asks.takes_defaults(content.get("spec") or {}, meta):
            asked = asks.by_namespace(meta.namespace, self.namespaces.get(meta.namespace, {}))
        if asked:
            patch = Patch(content)
            steer(content, meta, asked, patch)
            content = _applied(content, patch.operations)
        pod = msgspec.convert(content, Pod)
        pod.status.phase = "Pending"
        self.items.append((PODS, pod))

    def _group(self, group: PodGroup) -> None:
        group.metadata.uid = group.metadata.uid or f"{UID}-{next(self._numbers)}"
        group.metadata.creation_timestamp = format_time(self.now)
        group.status = PodGroupStatus(phase="Pending")
        self.items.append((POD_GROUPS, group))

    def _owner(self, pod: Pod) -> Object | None:
        uid = pod.metadata.controller.uid if pod.metadata.controller else ""
        return next((item for _, item in self.items if item.metadata.uid == uid), None)


def _applied(content: dict[str, Any], operations: list[Operation]) -> dict[str, Any]:
    result: dict[str, Any] = jsonpatch.apply_patch(content, operations)
    return result

"""Manifests as the cluster would have them: sent through the webhook's own routes, grouped as by the controller.

Objects that do not exist yet get names and UIDs of their own, so that they can stand beside those that do.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import count
from typing import Any

import click
import jsonpatch
import msgspec

from controller.gangs.workloads import group_to_make
from controller.gangs.workloads import pod_group as group_of_pod
from muster.api import names
from muster.api.admission import AdmissionRequest, GroupVersionKind
from muster.api.base import Resource
from muster.api.batch import JOBS, Job
from muster.api.core import INDEXED_JOBS, PODS, IndexedJob, Namespace, Pod
from muster.api.gang import gang_of
from muster.api.meta import Object, OwnerReference, format_time
from muster.api.scheduling import POD_GROUPS, PodGroup, PodGroupStatus
from muster.runtime import registry
from muster.volcano.podgroup import pod_group as group_of_job
from musterctl.manifests import offline_lookups
from musterctl.manifests.documents import documents
from webhook.app import routes
from webhook.config import UNTOUCHED_NAMESPACES, ResourceGroup
from webhook.registration import routes_of
from webhook.review import Handler, MalformedError

Item = tuple[Resource[Any], Object]
UID = "simulated"


class Manifests:
    """Reads files; `items` is what they make in the cluster, and `ignored` says what is not placed, e.g. Services.

    `now` is seconds since the epoch; the namespaces may ask for Muster; `groups` are those of the webhook.
    """

    def __init__(
        self,
        namespace: str,
        now: float,
        priorities: Mapping[str, int],
        namespaces: Iterable[Namespace] = (),
        *,
        groups: Sequence[ResourceGroup] = (),
    ) -> None:
        self.items: list[Item] = []
        self.ignored: list[str] = []
        self._namespace = namespace
        self._now = now
        self._priorities = priorities
        self._numbers: Iterator[int] = count(1)
        known = [{"kind": "Namespace", "metadata": msgspec.to_builtins(each.metadata)} for each in namespaces]
        self._nearby = offline_lookups.Manifests(known, namespace)
        self._handlers: Mapping[str, Handler] = routes(
            offline_lookups.lookups(self._nearby), registry.framework(), groups=groups
        )

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
                self._group(msgspec.to_builtins(group_of_pod(pod, self._owner(pod))))
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
                self._group(content)
            elif kind == (PODS.api_version, PODS.kind):
                self._pod(content)
            else:
                self.ignored.append(f"{kind[1] or 'object without a kind'} {meta['name']}")
        except (MalformedError, msgspec.ValidationError, ValueError) as error:
            raise click.ClickException(f"{file}: {kind[1]} {meta['name']}: {error}") from error

    def _metadata(self, content: dict[str, Any]) -> dict[str, Any]:
        meta: dict[str, Any] = content.setdefault("metadata", {})
        number = next(self._numbers)
        meta.setdefault("namespace", self._namespace)
        meta["name"] = meta.get("name") or f"{meta.get('generateName', 'unnamed-')}{number}"
        meta |= {"uid": f"{UID}-{number}", "creationTimestamp": format_time(self._now), "resourceVersion": ""}
        content.pop("status", None)
        return meta

    def _job(self, content: dict[str, Any]) -> None:
        job = msgspec.convert(self._admitted(content), Job)
        self.items.append((JOBS, job))
        self._group(msgspec.to_builtins(group_of_job(job, self._priorities)))

    def _batch_job(self, content: dict[str, Any]) -> None:
        """Its pods, as the Job controller makes them, behind the gate."""
        content = self._admitted(content)
        job = msgspec.convert(content, IndexedJob)
        if names.QUEUE not in (content["spec"]["template"].get("metadata") or {}).get("labels", {}):
            self.ignored.append(f"Job {job.metadata.name} (neither it nor its namespace has the label {names.QUEUE})")
            return
        self.items.append((INDEXED_JOBS, job))
        self._nearby.add(content)
        parallelism = 1 if job.spec.parallelism is None else job.spec.parallelism
        meta = job.metadata
        owner = OwnerReference(api_version="batch/v1", kind="Job", name=meta.name, uid=meta.uid, controller=True)
        for index in range(min(parallelism, job.spec.completions or parallelism)):
            template = deepcopy(job.spec.template)
            labels = {**(template.get("metadata") or {}).get("labels", {}), names.BATCH_JOB_NAME: meta.name}
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
        pod = msgspec.convert(self._admitted(content), Pod)
        pod.status.phase = "Pending"
        self.items.append((PODS, pod))

    def _group(self, content: dict[str, Any]) -> None:
        group = msgspec.convert(self._admitted(content), PodGroup)
        group.metadata.uid = group.metadata.uid or f"{UID}-{next(self._numbers)}"
        group.metadata.creation_timestamp = format_time(self._now)
        group.status = PodGroupStatus(phase="Pending")
        self.items.append((POD_GROUPS, group))

    def _admitted(self, content: dict[str, Any]) -> dict[str, Any]:
        """What becomes of a new object; ValueError if it is refused."""
        meta = content["metadata"]
        if meta["namespace"] in UNTOUCHED_NAMESPACES:
            return content
        group, _, version = content["apiVersion"].rpartition("/")
        for route in routes_of(group, f"{content['kind'].lower()}s"):
            request = AdmissionRequest(
                uid=UID,
                kind=GroupVersionKind(group, version, content["kind"]),
                name=meta["name"],
                namespace=meta["namespace"],
                operation="CREATE",
                object=msgspec.Raw(msgspec.json.encode(content)),
            )
            verdict = self._handlers[route](request)
            if verdict.errors:
                raise ValueError("; ".join(f"{error.path}: {error.message}" for error in verdict.errors))
            content = jsonpatch.apply_patch(content, verdict.patch)
        return content

    def _owner(self, pod: Pod) -> Object | None:
        uid = pod.metadata.controller.uid if pod.metadata.controller else ""
        return next((item for _, item in self.items if item.metadata.uid == uid), None)

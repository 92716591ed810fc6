"""Manifests as they would be admitted: sent through the webhook's own routes, in this process.

A workload is followed by its first pods (`firstpods`), as the pods are what is shaped; a TrainJob by what it becomes.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import jsonpatch
import jsonpointer
import msgspec

from muster.api.admission import AdmissionRequest, GroupVersionKind
from muster.api.fields import FieldError
from muster.api.trainer import TRAIN_JOBS, TrainJob
from muster.runtime.framework import Framework
from muster.runtime.plan import Plan
from muster.runtime.train_job import compile_train_job
from muster.volcano.plugins.base import PluginError
from muster.workloads.sample import uid_of
from musterctl.manifests.offline_lookups import JSON, Manifests, lookups
from musterctl.manifests.sample_pods import sample_pods
from webhook.app import routes
from webhook.config import UNTOUCHED_NAMESPACES, ResourceGroup
from webhook.lookup import Lookups
from webhook.patch import Operation, Why
from webhook.registration import routes_of
from webhook.review import MalformedError

Path = tuple[str | int, ...]
CREATION = "CREATE"


@dataclass(slots=True)
class Admitted:
    """One object before and after; with errors it would be refused. `about` says what it is if nobody wrote it."""

    before: JSON
    after: JSON
    reasons: dict[Path, Why] = field(default_factory=dict)
    """Path of what was added or changed → why."""
    errors: list[FieldError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    about: str = ""

    @property
    def title(self) -> str:
        """Kind and name."""
        metadata = self.before.get("metadata") or {}
        return f"{self.before.get('kind', 'object')} {metadata.get('name') or metadata.get('generateName', '')}"


class Admission:
    """Admits the objects of some manifests into `namespace`, where they name none, by a webhook with these groups."""

    def __init__(
        self,
        documents: Sequence[JSON],
        namespace: str,
        framework: Framework,
        cluster: Lookups | None = None,
        *,
        groups: Sequence[ResourceGroup] = (),
    ) -> None:
        self._documents = documents
        self._namespace = namespace
        self._framework = framework
        self._manifests = Manifests(documents, namespace)
        self._lookups = lookups(self._manifests, cluster)
        self._handlers = routes(self._lookups, framework, groups=groups)

    def run(self) -> Iterator[Admitted]:
        """Each object, and what follows from it. APIError if the cluster does not answer."""
        for document in self._documents:
            admitted = self._admit(document)
            yield admitted
            if not admitted.errors:
                yield from self._consequences(admitted.after)

    def _admit(self, document: JSON) -> Admitted:
        result = Admitted(document, deepcopy(document))
        metadata = document.get("metadata") or {}
        namespace = metadata.get("namespace") or self._namespace
        if namespace in UNTOUCHED_NAMESPACES:
            return result
        group, _, version = str(document.get("apiVersion", "")).rpartition("/")
        kind = str(document.get("kind", ""))
        for route in routes_of(group, f"{kind.lower()}s"):
            request = AdmissionRequest(
                uid="shape",
                kind=GroupVersionKind(group, version, kind),
                name=metadata.get("name", ""),
                namespace=namespace,
                operation=CREATION,
                object=msgspec.Raw(msgspec.json.encode(result.after)),
            )
            try:
                verdict = self._handlers[route](request)
            except (MalformedError, msgspec.ValidationError) as error:
                result.errors.append(FieldError(kind, f"the object can not be read: {error}"))
                break
            result.errors += verdict.errors
            result.warnings += [warning for warning in verdict.warnings if warning not in result.warnings]
            _apply(result, verdict.patch, verdict.reasons)
        return result

    def _consequences(self, document: JSON) -> Iterator[Admitted]:
        kind = (document.get("apiVersion"), document.get("kind"))
        if kind == (TRAIN_JOBS.api_version, TRAIN_JOBS.kind):
            yield from self._components(document)
        try:
            for first in sample_pods(document):
                if first.owner:
                    self._manifests.add(first.owner)
                admitted = self._admit(first.pod)
                admitted.about = first.about
                if first.always or admitted.reasons or admitted.errors:
                    yield admitted
        except (PluginError, msgspec.ValidationError) as error:
            refused = FieldError(str(document.get("kind")), f"its pods cannot be made: {error}")
            yield Admitted(document, document, errors=[refused])

    def _components(self, document: JSON) -> Iterator[Admitted]:
        metadata = {"namespace": self._namespace, "uid": uid_of(document["metadata"].get("name", ""))}
        job = msgspec.convert({**document, "metadata": {**metadata, **document["metadata"]}}, TrainJob)
        runtime = self._lookups.runtimes.find(job.spec.runtime_ref, job.metadata.namespace)
        compiled = compile_train_job(job, runtime, self._framework) if runtime else None
        if compiled is None or compiled.plan is None:
            return
        variables = _variables(compiled.plan)
        for component in compiled.components:
            manifest = msgspec.to_builtins(component.manifest)
            reasons = {
                (*path, "env", index): variables[each["name"]]
                for path, listed in _environments(manifest)
                for index, each in enumerate(listed)
                if each.get("name") in variables
            }
            yield Admitted(manifest, manifest, reasons, about=f"of TrainJob {job.metadata.name}, by {component.plugin}")


def _apply(result: Admitted, operations: Sequence[Operation], reasons: Sequence[Why]) -> None:
    for operation, why in zip(operations, reasons, strict=True):
        *parents, last = jsonpointer.JsonPointer(operation["path"]).parts
        node: Any = result.after
        path: list[str | int] = []
        for part in parents:
            path.append(int(part) if isinstance(node, list) else part)
            node = node[path[-1]]
        if isinstance(node, list):
            path.append(len(node) if last == "-" else int(last))
        else:
            path.append(last)
        value = operation["value"]
        if isinstance(value, list) and len(value) == 1:
            path.append(0)  # a list that is made for its first element
        if value != {}:  # a map that is only made to put something into it needs no reason of its own
            result.reasons[tuple(path)] = why
        result.after = jsonpatch.apply_patch(result.after, [operation])


def _variables(plan: Plan) -> dict[str, Why]:
    """Name of a variable that the plan sets → why."""
    return {
        variable.name: Why(variable.source, variable.plugin)
        for pod_set in plan.pod_sets
        for container in pod_set.containers
        for variable in container.env
    }


def _environments(node: Any, path: Path = ()) -> Iterator[tuple[Path, list[JSON]]]:
    """Every list of variables in an object, and where its container stands."""
    if isinstance(node, Mapping):
        if isinstance(node.get("env"), list):
            yield path, node["env"]
        for key, member in node.items():
            yield from _environments(member, (*path, key))
    elif isinstance(node, list):
        for index, element in enumerate(node):
            yield from _environments(element, (*path, index))

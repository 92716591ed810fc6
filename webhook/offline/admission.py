"""Admission of single objects, and of objects derived from these, through the webhook's routes in this process.

Each workload is followed by its first pod of each kind, as admission changes the pod. Each TrainJob is followed by the
objects that the controller would create for the TrainJob.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import jsonpatch
import jsonpointer
import msgspec

from muster.api.fields import FieldError
from muster.api.kubeflow.trainer import TRAIN_JOBS, TrainJob
from muster.api.kubernetes.admission import AdmissionRequest, GroupVersionKind, UserInfo
from muster.api.kubernetes.scheduling import NATIVE_POD_GROUPS
from muster.runtime.framework import Framework
from muster.runtime.plan import Plan
from muster.runtime.train_job import compile_train_job
from muster.workloads.sample import SamplePod, uid_of
from muster.workloads.table import kind_in
from webhook.app import routes
from webhook.config import UNTOUCHED_NAMESPACES, ResourceGroup
from webhook.lookup import Lookups
from webhook.offline import native, schemas
from webhook.offline.lookups import JSON, SUPPLIED_KINDS, Documents, lookups
from webhook.patch import Operation, Why
from webhook.registration import routes_of
from webhook.review import MalformedError

Path = tuple[str | int, ...]


@dataclass(slots=True)
class Admitted:
    """An object before and after admission; `errors` are the reasons for its refusal.

    `about` describes an object that is derived from another object.
    """

    before: JSON
    after: JSON
    reasons: dict[Path, Why] = field(default_factory=dict)
    """Maps the path of each added or changed value to the reason for the change."""
    errors: list[FieldError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    about: str = ""

    @property
    def title(self) -> str:
        """Kind and name of the object, as the prefix of messages."""
        metadata = self.before.get("metadata") or {}
        return f"{self.before.get('kind', 'object')} {metadata.get('name') or metadata.get('generateName', '')}"


class OfflineAdmission:
    """Admission of new objects by a webhook with these resource groups.

    Objects on which a decision depends are looked up in `documents`, then in `cluster`. With `native`, the result
    contains, after each workload, the native PodGroups of its gangs. `user` is the name of the user who creates the
    objects; "" if the user is unknown.
    """

    def __init__(
        self,
        documents: Documents,
        framework: Framework,
        cluster: Lookups | None = None,
        *,
        groups: Sequence[ResourceGroup] = (),
        native: bool = False,
        user: str = "",
    ) -> None:
        self._user = UserInfo(username=user)
        self.native = native
        self.documents = documents
        self.framework = framework
        self.lookups = replace(lookups(documents, cluster), native_groups=(lambda: True) if native else None)
        self._handlers = routes(self.lookups, framework, groups=groups)

    def admit(self, document: JSON) -> Admitted:
        """Send the object through the same routes as the API server would, and continue after a refusal."""
        result = Admitted(document, deepcopy(document))
        metadata = document.get("metadata") or {}
        namespace = metadata.get("namespace") or self.documents.namespace
        if namespace in UNTOUCHED_NAMESPACES:
            return result
        group, _, version = str(document.get("apiVersion", "")).rpartition("/")
        kind = str(document.get("kind", ""))
        for route in routes_of(group, f"{kind.lower()}s"):
            request = AdmissionRequest(
                uid="offline",
                kind=GroupVersionKind(group, version, kind),
                name=metadata.get("name", ""),
                namespace=namespace,
                operation="CREATE",
                user_info=self._user,
                object=msgspec.Raw(msgspec.json.encode(result.after)),
            )
            try:
                verdict = self._handlers[route](request)
            except (MalformedError, ValueError) as error:  # as in webhook.app
                result.errors.append(FieldError(kind, f"the object cannot be read: {error}"))
                break
            result.errors += verdict.errors
            result.warnings += [warning for warning in verdict.warnings if warning not in result.warnings]
            for operation, why in zip(verdict.patch, verdict.reasons, strict=True):
                _apply(result, operation, why)
        return result


def _apply(result: Admitted, operation: Operation, why: Why) -> None:
    """Apply one operation of a patch.

    Operations are applied one at a time, because "-" in a path refers to the current end of a list.
    """
    # A map that was only added to hold the next value needs no reason, and a removed field has no line to explain.
    if operation["op"] == "add" and operation["value"] != {}:
        result.reasons[_path_of(operation, result.after)] = why
    # A copy: the value may be part of the webhook's configuration, and later operations may write into it.
    result.after = jsonpatch.apply_patch(result.after, [deepcopy(operation)], in_place=True)


def _path_of(operation: Operation, document: JSON) -> Path:
    """Return the path of an operation's value; indexes are numbers, and "-" becomes the index of the new element."""
    path: list[str | int] = []
    node: Any = document
    for part in jsonpointer.JsonPointer(operation["path"]).parts:
        if isinstance(node, list):
            path.append(len(node) if part == "-" else int(part))
            node = node[int(part)] if part != "-" else None
        else:
            path.append(part)
            node = node.get(part)
    value = operation["value"]
    if isinstance(value, list) and len(value) == 1:
        path.append(0)  # the list was added for its first element
    return tuple(path)


def submit_all(admission: OfflineAdmission, documents: Iterable[JSON]) -> Iterator[Admitted]:
    """Validate objects against their schemas, as the API server does; then yield the same results as `admit_all`.

    Objects of kinds that Muster does not read get a warning.
    """
    for document in documents:
        if wrong := schemas.mistakes(document):  # the API server then calls no webhook
            yield Admitted(document, deepcopy(document), errors=wrong)
        elif _is_known(document):
            yield from admit_all(admission, [document])
        else:
            warning = f"{document.get('apiVersion')}: Muster does not read objects of this kind"
            yield Admitted(document, deepcopy(document), warnings=[warning])


def admit_all(admission: OfflineAdmission, documents: Iterable[JSON]) -> Iterator[Admitted]:
    """Yield each object after admission, followed by its derived objects if the object is admitted.

    Raise APIError if the cluster does not respond.
    """
    for document in documents:
        admitted = admission.admit(document)
        yield admitted
        if not admitted.errors:
            yield from components(admission, admitted.after)
            pods = list(_pods(admission, admitted.after))
            yield from pods
            if admission.native:
                yield from _native(admission, admitted.after, pods)


def _is_known(document: JSON) -> bool:
    """Return True for an object that admission reviews, or that the reviews of other objects look up."""
    kind, group = str(document.get("kind", "")), str(document.get("apiVersion", "")).rpartition("/")[0]
    reviewed = routes_of(group, f"{kind.lower()}s") or kind_in(document)
    return bool(reviewed) or group == NATIVE_POD_GROUPS.group or kind in SUPPLIED_KINDS


def _native(admission: OfflineAdmission, document: JSON, pods: Iterable[Admitted]) -> Iterator[Admitted]:
    """Yield the native PodGroups of a workload's gangs, or Muster's equivalent of a native PodGroup."""
    found = native.as_published(
        document, [each.after for each in pods], admission.lookups.owners, admission.documents.namespace
    )
    try:
        for manifest, about in (*native.translated(document), *found):
            yield Admitted(manifest, manifest, about=about)
    except msgspec.ValidationError as error:
        yield Admitted(document, document, errors=[_unreadable(document, error)])
    except ValueError as error:
        errors = list(native.wrong_quantities(document)) or [_unreadable(document, error)]
        yield Admitted(document, document, errors=errors)


def _unreadable(document: JSON, error: Exception) -> FieldError:
    return FieldError(str(document.get("kind")), f"it cannot be read: {error}")


def sample_pods(workload: JSON) -> Iterator[SamplePod]:
    """Yield the first pod of each pod template of a workload. Raise ValueError if a Job names an unknown plugin."""
    kind = kind_in(workload)
    return kind.samples(workload) if kind and kind.samples else iter(())


def _pods(admission: OfflineAdmission, workload: JSON) -> Iterator[Admitted]:
    """Yield the first pods of a workload.

    Intermediate owners, such as the Job of a CronJob, are added to the look-ups.
    """
    try:
        for sample in sample_pods(workload):
            if sample.owner:
                admission.documents.add(sample.owner)
            admitted = admission.admit(sample.pod)
            admitted.about = sample.about
            if sample.always or admitted.reasons or admitted.errors:
                yield admitted
    except ValueError as error:  # msgspec.ValidationError is one
        refused = FieldError(str(workload.get("kind")), f"its pods cannot be created: {error}")
        yield Admitted(workload, workload, errors=[refused])


def components(admission: OfflineAdmission, document: JSON) -> Iterator[Admitted]:
    """Yield the objects that the controller creates for a TrainJob.

    The results contain the reason for each environment variable. Yield nothing for workloads of other kinds.
    """
    if (document.get("apiVersion"), document.get("kind")) != (TRAIN_JOBS.api_version, TRAIN_JOBS.kind):
        return
    metadata = {"namespace": admission.documents.namespace, "uid": uid_of(document["metadata"].get("name", ""))}
    job = msgspec.convert({**document, "metadata": {**metadata, **document["metadata"]}}, TrainJob)
    runtime = admission.lookups.runtimes.find(job.spec.runtime_ref, job.metadata.namespace)
    claims = admission.lookups.claims(job.metadata.namespace)
    compiled = compile_train_job(job, runtime, admission.framework, claims=claims) if runtime else None
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


def _variables(plan: Plan) -> dict[str, Why]:
    """Return a mapping from the name of each environment variable in the plan to the reason for the variable."""
    return {
        variable.name: Why(variable.source, variable.plugin)
        for pod_set in plan.pod_sets
        for container in pod_set.containers
        for variable in container.env
    }


def _environments(node: Any, path: Path = ()) -> Iterator[tuple[Path, list[JSON]]]:
    """Yield each list of environment variables in an object, with the path of the container."""
    if isinstance(node, Mapping):
        if isinstance(node.get("env"), list):
            yield path, node["env"]
        for key, member in node.items():
            yield from _environments(member, (*path, key))
    elif isinstance(node, list):
        for index, element in enumerate(node):
            yield from _environments(element, (*path, index))

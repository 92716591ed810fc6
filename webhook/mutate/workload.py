"""A workload that opts in to Muster, or whose namespace does: its labels go to its pods, where Muster sees them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from muster.api import names
from muster.api.kubernetes.admission import AdmissionRequest
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.kubernetes.pod_problems import DISRUPTED
from muster.volcano.access import locked_to
from muster.workloads.batch_job import BATCH_JOB, CRON_JOB
from muster.workloads.jobset import JOB_SET
from muster.workloads.kind import Path, WorkloadKind, pod_templates
from muster.workloads.table import KINDS
from webhook.lookup import Namespaces
from webhook.mutate import optin
from webhook.patch import Patch, Why, find, mapping, pointer
from webhook.review import Handler, Verdict, generic

JSON = Mapping[str, Any]

LABELLED = tuple(kind for kind in KINDS if kind.labelled)
"""The kinds that the API server sends here."""
DEFAULT_BACKOFF_LIMIT = 6
"""Of Kubernetes."""
EVICTED = {"action": "Ignore", "onPodConditions": [{"type": DISRUPTED, "status": "True"}]}
"""The rule of a podFailurePolicy for pods that the Eviction API let go."""
_OWNERS = frozenset((kind.resource.group, kind.resource.kind) for kind in (CRON_JOB, JOB_SET))
"""Owners of batch Jobs that do not mind a policy more in them."""
_BY_NAME = {(kind.resource.group, kind.resource.kind): kind for kind in LABELLED}


def reviewer(namespaces: Namespaces) -> Handler:
    """Return the handler for workloads, on CREATE. Only a batch Job takes the queue of its namespace itself."""

    def review(request: AdmissionRequest) -> Verdict:
        kind = _BY_NAME.get((request.kind.group, request.kind.kind))
        if kind is None:
            return Verdict()
        workload = generic(request.object)
        of_namespace = namespaces.metadata(
            request.namespace, with_queue=kind is BATCH_JOB and not _has_own_label(workload)
        ).labels
        inherited = of_namespace if kind is BATCH_JOB else {}
        locked = locked_to(of_namespace)
        patch = labelled(workload, kind.templates, inherited, locked)
        warnings = [optin.set_back(path, queue, locked) for path, queue in _said(workload, kind, locked)]
        if kind is BATCH_JOB and _opts_in(workload, patch):
            warnings += forgiving(workload, patch)
            native(workload, patch)
        elif kind is JOB_SET:
            warnings += unforgiving(workload)
        return Verdict.of(patch, warnings)

    return review


def forgiving(job: JSON, patch: Patch) -> list[str]:
    """Have evicted pods of a batch Job not count as failed; return a warning where its user has to do something.

    Kubernetes counts them towards `backoffLimit` (6 by default), so that an eviction of seven pods would fail the Job
    for good, and with it the JobSet that it is part of. Jobs of a controller that is not known are left to that.
    """
    spec = mapping(job.get("spec"))
    template = mapping(find(spec, ("template", "spec")))
    if spec.get("podFailurePolicy") or spec.get("managedBy") or not _OWNERS.issuperset(_owner_kinds(job)):
        return []
    if template.get("restartPolicy") == "Never":
        why = Why("so that pods that Muster evicts do not count towards backoffLimit", "spec.template.spec")
        patch.set("spec", "podFailurePolicy", value={"rules": [EVICTED]}, why=why)
        if "podReplacementPolicy" in spec:  # the API server's default, which it takes with no podFailurePolicy
            patch.set("spec", "podReplacementPolicy", value="Failed", why=why)
        return []
    return _ends_with_an_eviction(spec, "spec")


def native(job: JSON, patch: Patch) -> None:
    """Mark the template of a Job that asks for a native PodGroup, or names one: that is the gang of its pods.

    Without the mark they are a gang as Muster reads Jobs, as the Job controller gives every Job a native PodGroup. That
    group has none of the Job's annotations, so those about its gang go to the pods.
    """
    spec = mapping(job.get("spec"))
    if not spec.get("scheduling") and not find(spec, ("template", "spec", "schedulingGroup")):
        return
    place = ("spec", "template", "metadata", "annotations")
    why = Why("its native PodGroup is its gang", "spec.scheduling" if spec.get("scheduling") else "spec.template.spec")
    patch.set(*place, names.NATIVE_GROUP, value="true", why=why)
    given, there = mapping(find(job, ("metadata", "annotations"))), mapping(find(job, place))
    for key in (names.TOPOLOGY, *names.TOPOLOGY_NEAR_KEYS, *names.GANG_KEYS):
        if key in given and key not in there:
            why = Why("so that its pods have it", f"metadata.annotations[{key}]")
            patch.set(*place, key, value=given[key], why=why)


def unforgiving(jobset: JSON) -> list[str]:
    """Warn of the Jobs of a JobSet that one eviction would fail: its controller is told so too late, and tells nobody.

    Where a template names no restartPolicy, JobSet's own webhook has filled in OnFailure.
    """
    asked, jobs = names.QUEUE in _labels(jobset), find(jobset, ("spec", "replicatedJobs"))
    result = []
    for index, replicated in enumerate(jobs if isinstance(jobs, list) else ()):
        spec = mapping(find(replicated, ("template", "spec")))
        labels = _labels(mapping(spec.get("template")))
        never = find(spec, ("template", "spec", "restartPolicy")) == "Never"
        if (asked or names.QUEUE in labels) and not (optin.opted_out(labels) or spec.get("podFailurePolicy") or never):
            result += _ends_with_an_eviction(spec, f"spec.replicatedJobs[{index}].template.spec")
    return result


def _ends_with_an_eviction(spec: JSON, path: str) -> list[str]:
    """Return a warning if an eviction of all pods is more than the Job's backoffLimit."""
    parallelism, limit = spec.get("parallelism") or 1, spec.get("backoffLimit")
    limit = DEFAULT_BACKOFF_LIMIT if limit is None else limit
    if not (isinstance(parallelism, int) and isinstance(limit, int)) or parallelism <= limit:
        return []
    warning = (
        f"{path}.backoffLimit: evicted pods count towards it, so that one eviction of the {parallelism} pods would "
        f"fail this Job for good; set {path}.template.spec.restartPolicy to Never, and Muster has Kubernetes not count "
        "them"
    )
    return [warning]


def _owner_kinds(job: JSON) -> Iterator[tuple[str, str]]:
    owners = find(job, ("metadata", "ownerReferences"))
    for owner in owners if isinstance(owners, list) else ():
        yield str(mapping(owner).get("apiVersion")).partition("/")[0], str(mapping(owner).get("kind"))


def _opts_in(job: JSON, patch: Patch) -> bool:
    """Return True if the Job's pods will be Muster's."""
    labels = _labels(mapping(find(job, ("spec", "template"))))
    set_now = any(pointer("metadata", "labels", names.QUEUE) in each["path"] for each in patch.operations)
    return not optin.opted_out(labels) and (set_now or names.QUEUE in labels)


def labelled(
    workload: JSON,
    paths: Iterable[Path] = BATCH_JOB.templates,
    inherited: Mapping[str, str] | None = None,
    locked: str = "",
) -> Patch:
    """Copy the workload's labels to its templates, or else the queue in the namespace's labels (`inherited`).

    Other queues than the one that the namespace is locked to, if it is, are set back to that.
    """
    patch, paths = Patch(workload), list(paths)
    for place, _ in _others(workload, paths, locked):
        why = Why("the namespace is locked to its queue", f"label {names.QUEUE_LOCKED}")
        patch.set(*place, "metadata", "labels", names.QUEUE, value=locked, why=why)
    labels = _labels(workload)
    own = {key: labels[key] for key in (names.QUEUE, names.MANAGED) if key in labels}
    if locked and names.QUEUE in own:
        own[names.QUEUE] = locked
    opt_in = None if optin.is_explicit(labels) else optin.from_namespace("", inherited or {})
    for place, template in pod_templates(workload, paths):
        there = _labels(template)
        wanted = {} if optin.is_explicit(there) else dict(own)
        if opt_in and not optin.is_explicit(there) and _may_inherit(template):
            wanted[names.QUEUE] = opt_in.queue
        if names.FRAMEWORK in labels:
            wanted[names.FRAMEWORK] = labels[names.FRAMEWORK]
        for key, value in wanted.items():
            if key not in there:
                source = f"metadata.labels[{key}]" if key in labels else "namespace"
                patch.set(*place, "metadata", "labels", key, value=value, why=Why("so that its pods have it", source))
    return patch


def _others(workload: JSON, paths: Iterable[Path], locked: str) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield places of the workload and its templates that name another queue than the locked one, with that queue."""
    for place, node in ((), workload), *pod_templates(workload, paths):
        labels = _labels(node)
        if locked and labels.get(names.QUEUE, locked) != locked and not optin.opted_out(labels):
            yield tuple(place), labels[names.QUEUE]


def _said(workload: JSON, kind: WorkloadKind, locked: str) -> Iterator[tuple[str, str]]:
    """Yield the same with the path of the label."""
    for place, queue in _others(workload, kind.templates, locked):
        steps = ".".join(map(str, (*place, "metadata", "labels")))
        yield f"{steps}[{names.QUEUE}]", queue


def _has_own_label(workload: JSON) -> bool:
    """Return True if the workload is sent for a label of its own, and not only for its namespace."""
    nodes = [workload, *(template for _, template in pod_templates(workload, BATCH_JOB.templates))]
    return any(key in _labels(node) for node in nodes for key in (names.QUEUE, names.FRAMEWORK, names.MANAGED))


def _may_inherit(template: JSON) -> bool:
    """Return True if a pod of this template may get the queue of its namespace."""
    try:
        meta = msgspec.convert(template.get("metadata") or {}, ObjectMeta)
        spec = msgspec.convert(template.get("spec") or {}, dict[str, Any])
    except msgspec.ValidationError:
        return False
    return optin.may_inherit(spec, meta)


def _labels(node: JSON) -> dict[str, str]:
    return mapping(find(node, ("metadata", "labels")))

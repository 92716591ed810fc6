"""Validation of pods with Muster's schedulers, and checks of pod templates that all kinds of workloads share.

The checks cover disruption budgets, parts of GPUs, topology, resource names and frameworks.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from muster.api.fields import FieldError, Findings, InvalidFieldError
from muster.api.kubernetes import admission, core
from muster.api.kubernetes.constraints import conditions_of
from muster.api.limits import NODE_CONDITIONS, RESOURCES, TOLERATIONS
from muster.api.names import FRAMEWORK, JDB_MAX_UNAVAILABLE, JDB_MIN_AVAILABLE, TOPOLOGY_GROUP
from muster.resources import faults, spares
from muster.resources.gpus import share_errors
from muster.resources.pods import resource_names
from muster.resources.runtime import notice_mistakes
from muster.resources.topology import mistakes
from muster.runtime.framework import Framework
from muster.runtime.settings import from_annotations
from muster.runtime.workload import describe, template_of
from muster.workloads.adapter import Adapter
from webhook.review import ReviewVerdict, decode

_BUDGET = re.compile(r"[1-9][0-9]*|[1-9][0-9]?%")
_INTEGER = re.compile(r"[+-]?[0-9]+")
Templates = Sequence[tuple[Mapping[str, str], str, int | None]]
"""For each pod template: its annotations, their path, and the number of its pods (None if unknown)."""


def review(request: admission.AdmissionRequest) -> ReviewVerdict:
    """Review a new pod that `conditions.NEEDS_A_CHECK` selects.

    The topology of a pod with a controller is not checked again, because the workload was checked.
    """
    pod = decode(request.object, core.Pod)
    annotations, path = pod.metadata.annotations, "metadata.annotations"
    mistakes_of_its_own = [] if pod.metadata.controller else _mistakes(annotations, path)
    return ReviewVerdict(errors=[*check_pod(annotations, pod.spec), *mistakes_of_its_own])


def check_pod(annotations: Mapping[str, str], spec: core.PodSpec, path: str = "") -> Iterator[FieldError]:
    """Check the rules for all pods; `path` is empty for a pod, or the path of a pod template with a trailing dot."""
    where = f"{path}metadata.annotations"
    yield from check_budgets(annotations, where)
    yield from share_errors(annotations, spec, where, f"{path}spec")
    yield from RESOURCES.exceeded_by(f"{path}spec.containers", len(resource_names(spec)))
    conditions = conditions_of(spec.node_selector, spec.affinity.node_affinity if spec.affinity else None)
    yield from NODE_CONDITIONS.exceeded_by(f"{path}spec.affinity.nodeAffinity", conditions)
    yield from TOLERATIONS.exceeded_by(f"{path}spec.tolerations", len(spec.tolerations))


def check_budgets(annotations: Mapping[str, str], path: str, *, one: bool = True) -> Iterator[FieldError]:
    """Check Volcano's disruption budgets.

    With `one`, only one of the two annotations is allowed, as in pods; a Volcano Job may have both.
    """
    for key in (JDB_MIN_AVAILABLE, JDB_MAX_UNAVAILABLE):
        if key in annotations and not _BUDGET.fullmatch(annotations[key]):
            yield FieldError(f"{path}[{key}]", _not_a_budget(key, annotations[key]), annotations[key])
    if one and JDB_MIN_AVAILABLE in annotations and JDB_MAX_UNAVAILABLE in annotations:
        both = f"<[{JDB_MIN_AVAILABLE} {JDB_MAX_UNAVAILABLE}]>"
        message = f"not allow configure multiple annotations {both} at same time; keep one of them"
        yield FieldError(f"{path}[{JDB_MAX_UNAVAILABLE}]", message, annotations[JDB_MAX_UNAVAILABLE])


def _not_a_budget(key: str, value: str) -> str:
    """Return Volcano's error message, because tools search for its text, extended by the allowed values."""
    shown = f"invalid value <{json.dumps(value)}> for {key}"
    if _INTEGER.fullmatch(value):
        return f"{shown}, it must be a positive integer, or a percentage from 1% to 99%"
    return f"{shown}, it must be a valid percentage which between 1% ~ 99%, or a number of pods greater than 0"


def check_framework(
    template: Mapping[str, Any], path: str, adapter: Adapter, annotations: Mapping[str, str], framework: Framework
) -> Findings:
    """Check settings and reserved variables of the labelled template at `path`; `annotations` are the workload's."""
    findings = Findings()
    spec, labels, own = template_of(template)
    settings = from_annotations((f"{path}.metadata.annotations", own), ("metadata.annotations", annotations))
    try:
        info = describe(labels[FRAMEWORK], adapter, spec, path=f"{path}.spec", settings=settings)
    except InvalidFieldError as error:
        findings.errors.append(error.error)
    else:
        findings.add(framework.validate(info))
    return findings


def check_annotations(workload: Mapping[str, str], templates: Templates = ()) -> Iterator[FieldError]:
    """Check annotations of a workload and its templates about topology, spares, node faults and notices."""
    for annotations, path, pods in ((workload, "metadata.annotations", None), *templates):
        yield from _mistakes(annotations, path, pods)
        yield from notice_mistakes(annotations, path)
    for key in TOPOLOGY_GROUP:
        yield from _incomplete_groups(key, templates)


def _mistakes(annotations: Mapping[str, str], path: str, pods: int | None = None) -> Iterator[FieldError]:
    """Check annotations of one object or template about topology, spares and node faults."""
    yield from mistakes(annotations, path, pods)
    yield from spares.mistakes(annotations, path)
    yield from faults.mistakes(annotations, path)


def _incomplete_groups(key: str, templates: Templates) -> Iterator[FieldError]:
    """Refuse topology groups that do not consist of a leader and its workers.

    As in Kueue, a valid group has two pod sets, one of which has a single pod.
    """
    groups: dict[str, list[tuple[str, int | None]]] = {}
    for annotations, path, pods in templates:
        if key in annotations:
            groups.setdefault(annotations[key], []).append((f"{path}[{key}]", pods))
    for name, found in groups.items():
        counts = [pods for _, pods in found]
        known = None not in counts
        if len(found) != 2 or (known and 1 not in counts):  # noqa: PLR2004 - a leader and its workers
            have = f"{len(found)} of them" + (f", of {', '.join(map(str, counts))} pods" if known else "")
            message = f"must be on two pod templates, one of which has one pod (the leader); it is on {have}"
            yield FieldError(found[0][0], message, name)

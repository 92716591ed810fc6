"""Settings that admission adds to the pods of a Volcano Job: settings of a resource group, and marker resources.

The settings are stored in an annotation of the Job, not in its tasks, because the list of tasks is compared as a whole
when a manifest is applied again. When a Job is decoded, the settings are merged into its templates
(`muster.api.volcano.batch.Job`).
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec
from msgspec import field

from muster.api import names
from muster.api.base import Wire
from muster.api.kubernetes.constraints import Toleration
from muster.api.limits import NODE_CONDITIONS, TOLERATIONS
from muster.api.unchecked import mapping

Path = tuple[str | int, ...]
"""Path of a value in a pod spec: field names and list indexes; `-` appends to a list, as in JSON patches."""


class PodSettings(Wire):
    """Settings for the pods of the listed tasks."""

    tasks: list[str] = field(default_factory=list)
    node_selector: dict[str, str] = field(default_factory=dict)
    tolerations: list[Toleration] = field(default_factory=list)
    affinity: dict[str, Any] = field(default_factory=dict)
    scheduler_name: str = ""
    marked: bool = False
    """True if the pods request the marker resources, by which a shared kube-scheduler recognizes Muster's pods."""


def stored(settings: Sequence[PodSettings]) -> str:
    """Return the settings as the text of a Job's annotation."""
    return msgspec.json.encode(settings).decode()


def recorded(annotations: Mapping[str, str]) -> list[PodSettings]:
    """Return the settings in the annotation of a Job; no settings if the annotation cannot be read.

    Even if a user has bypassed admission, selectors and tolerations beyond a pod's limit plus one are dropped.
    """
    text = annotations.get(names.GROUPED_TEMPLATES)
    try:
        found = msgspec.json.decode(text, type=list[PodSettings]) if text else []
    except msgspec.MsgspecError:
        return []
    for each in found:
        each.node_selector = dict(islice(each.node_selector.items(), NODE_CONDITIONS.value + 1))
        del each.tolerations[TOLERATIONS.value + 1 :]
    return found


def additions(spec: Mapping[str, Any], settings: PodSettings) -> Iterator[tuple[Path, Any]]:
    """Yield the settings that a pod spec lacks; raise ValidationError if its tolerations are malformed."""
    selector = mapping(spec.get("nodeSelector"))
    for key, value in settings.node_selector.items():
        if selector.get(key) != value:
            yield ("nodeSelector", key), value
    if settings.affinity and not spec.get("affinity"):
        yield ("affinity",), settings.affinity
    known = [explicit(each) for each in msgspec.convert(spec.get("tolerations") or [], list[Toleration])]
    for toleration in settings.tolerations:
        if explicit(toleration) not in known:
            yield ("tolerations", "-"), msgspec.to_builtins(toleration)
    if settings.scheduler_name and spec.get("schedulerName") != settings.scheduler_name:
        yield ("schedulerName",), settings.scheduler_name
    if settings.marked:
        yield from _markers(spec.get("containers"))


def _markers(containers: Any) -> Iterator[tuple[Path, Any]]:
    """Yield the missing marker resources, preferably for a container that has limits, so that others stay unlimited."""
    if not isinstance(containers, list):
        return
    limits = [mapping(mapping(mapping(each).get("resources")).get("limits")) for each in containers]
    index = next((index for index, each in enumerate(limits) if each), 0)
    for marker in sorted(names.MARKERS):
        if containers and not any(marker in each for each in limits):
            yield ("containers", index, "resources", "limits", marker), "1"


def with_settings(template: Mapping[str, Any], settings: PodSettings) -> dict[str, Any]:
    """Return a copy of a pod template with the settings; a malformed template is returned unchanged."""
    spec: Any = mapping(template.get("spec"))
    try:
        for path, value in list(additions(spec, settings)):
            spec = _put(spec, path, value)
    except msgspec.ValidationError:
        return dict(template)
    return {**template, "spec": spec} if spec else dict(template)


def explicit(toleration: Toleration) -> Toleration:
    """Return the toleration with an explicit operator, so that equal tolerations compare as equal."""
    return msgspec.structs.replace(toleration, operator=toleration.operator or "Equal")


def _put(node: Any, path: Path, value: Any) -> Any:
    head, *rest = path
    if head == "-":
        return [*(node or []), value]
    if isinstance(head, int):
        return [*node[:head], _put(node[head], tuple(rest), value), *node[head + 1 :]]
    members = mapping(node)
    return {**members, head: _put(members.get(head), tuple(rest), value) if rest else value}

"""The configuration of admission: resource groups, in the YAML format of Volcano's admission.

Only the function `load` does I/O. A *resource group* restricts pods, selected by namespace or annotation, to some of
the nodes, through node labels, tolerations, affinity or a scheduler.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from muster.api import names
from muster.api.fields import FieldError
from muster.api.kubernetes.constraints import Affinity, Toleration
from muster.api.volcano.podsettings import PodSettings, explicit
from muster.process.settings import mistakes
from webhook.objects.constraints import affinity_errors, label_errors, toleration_errors
from webhook.objects.names import is_subdomain
from webhook.review import without_nulls

GROUP_ANNOTATION: Final = "volcano.sh/resource-group"
"""Annotation by which a pod selects a resource group, if the group has no field `object`."""
UNTOUCHED_NAMESPACES: Final = ("kube-system", "kube-node-lease", names.SYSTEM_NAMESPACE)
"""Namespaces whose objects are never sent to the webhook."""
_KEYS: Final = ("namespace", "annotation")
_LIST: Final = "resourceGroups"


class ResourceGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A group of pods, selected by namespaces or annotations, and the settings that are written into the pods."""

    name: str
    namespaces: tuple[str, ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()
    scheduler_name: str = ""
    tolerations: tuple[Toleration, ...] = ()
    labels: dict[str, str] = {}
    """Labels of the group's nodes, which become the node selector of its pods."""
    affinity: dict[str, Any] = {}
    """Affinity as JSON."""

    @property
    def settings(self) -> PodSettings:
        """The settings that are written into the group's pods."""
        return PodSettings(
            node_selector=self.labels,
            tolerations=list(self.tolerations),
            affinity=self.affinity,
            scheduler_name=self.scheduler_name,
        )

    def takes(self, namespace: str, annotations: Mapping[str, str]) -> bool:
        """Return True if a pod with this namespace and these annotations belongs to the group."""
        return namespace in self.namespaces or any(annotations.get(key) == value for key, value in self.annotations)


class _PodSelection(msgspec.Struct, forbid_unknown_fields=True):
    """The selection of a group's pods; `value` lists namespaces, or annotations as `key: value`."""

    key: str
    value: list[str]


class _WrittenGroup(msgspec.Struct, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """A resource group as written in the file, from which a `ResourceGroup` is built."""

    resource_group: str
    object: _PodSelection | None = None
    scheduler_name: str = ""
    tolerations: list[Toleration] = []
    labels: dict[str, str] = {}
    affinity: Any = None
    """The affinity of the pods: a mapping, or text in JSON or YAML that contains a mapping."""


class _GroupsFile(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    resource_groups: list[Any] = []


def load(path: Path) -> tuple[ResourceGroup, ...]:
    """Read the resource groups in a file; raise ValueError with the file's name and all errors in the file."""
    try:
        return parse(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error


def parse(text: str) -> tuple[ResourceGroup, ...]:
    """Read the resource groups in YAML text, which may be empty; raise ValueError with all errors and their paths."""
    try:
        document = _read_yaml(text)
    except ValueError as error:
        raise ValueError(f"admission configuration: {error}") from error
    if not isinstance(document, dict):
        raise ValueError(  # noqa: TRY004 - no argument of the caller has a wrong type, but the file
            f"admission configuration: the file should be a mapping with the list {_LIST}"
        )
    errors = mistakes(document, _GroupsFile, "")
    written = document.get(_LIST)
    groups: list[ResourceGroup] = []
    seen: dict[str, int] = {}
    for index, each in enumerate(written if isinstance(written, list) else []):
        path = f"{_LIST}[{index}]"
        found = mistakes(each, _WrittenGroup, path)
        if isinstance(each, dict):
            group = msgspec.convert({"resourceGroup": "", **_sound(each, found, path)}, _WrittenGroup)
            found += _name_errors(each, path, seen, index)
            groups.append(_resolved(group, path, found))
        errors += found
    if errors:
        raise ValueError(f"admission configuration: {'; '.join(map(str, errors))}")
    return tuple(groups)


def _read_yaml(text: str) -> Any:
    """Return the content of a YAML document; an empty document counts as an empty mapping.

    Raise ValueError, with a message of one line, if the content cannot be read.
    """
    try:
        return without_nulls(yaml.safe_load(text) or {})
    except (yaml.YAMLError, ValueError) as error:  # a date that does not exist raises no YAMLError
        raise ValueError(f"it is not YAML: {' '.join(str(error).split())}") from error
    except RecursionError:
        raise ValueError(
            "the file cannot be read, because an alias contains itself, or the content is nested too deeply"
        ) from None


def _sound(written: Mapping[Any, Any], wrong: Sequence[FieldError], path: str) -> dict[Any, Any]:
    """Return the valid fields of a group."""
    bad = {re.split(r"[.\[]", mistake.path.removeprefix(f"{path}."))[0] for mistake in wrong}
    known = {field.encode_name for field in msgspec.structs.fields(_WrittenGroup)}
    return {name: value for name, value in written.items() if name in known - bad}


def _name_errors(group: Mapping[Any, Any], path: str, seen: dict[str, int], index: int) -> Iterator[FieldError]:
    name = group.get("resourceGroup")
    if not isinstance(name, str):
        return
    first = seen.setdefault(name, index)
    if not name:
        yield FieldError(f"{path}.resourceGroup", "the group needs a name", reason="Required")
    elif first != index:
        message = f"{_LIST}[{first}] already has this name; give each group a different name"
        yield FieldError(f"{path}.resourceGroup", message, name, reason="Duplicate")


def _resolved(group: _WrittenGroup, path: str, errors: list[FieldError]) -> ResourceGroup:
    """Convert a group from the file into a `ResourceGroup`; append errors in the group to `errors`."""
    namespaces, annotations = _members(group, f"{path}.object", errors)
    affinity = _affinity(group.affinity, f"{path}.affinity", errors)
    for index, toleration in enumerate(group.tolerations):
        errors += toleration_errors(toleration, f"{path}.tolerations[{index}]")
    errors += label_errors(group.labels, f"{path}.labels")
    if group.scheduler_name and not is_subdomain(group.scheduler_name):
        syntax = "a-z, 0-9, '-' and '.', beginning and ending with a letter or digit"
        message = f"should be the name of a scheduler: {syntax}"
        errors.append(FieldError(f"{path}.schedulerName", message, group.scheduler_name))
    if not (errors or affinity or group.scheduler_name or group.tolerations or group.labels):
        message = "the group changes nothing; give it schedulerName, tolerations, labels or affinity"
        errors.append(FieldError(path, message, group.resource_group))
    return ResourceGroup(
        name=group.resource_group,
        namespaces=tuple(namespaces),
        annotations=tuple(annotations),
        scheduler_name=group.scheduler_name,
        tolerations=tuple(map(explicit, group.tolerations)),
        labels=group.labels,
        affinity=affinity,
    )


def _members(
    group: _WrittenGroup, path: str, errors: list[FieldError]
) -> tuple[Sequence[str], Sequence[tuple[str, str]]]:
    """Return the namespaces and the annotations by which a group selects its pods."""
    if group.object is None:
        return (), [(GROUP_ANNOTATION, group.resource_group)]
    key, values = group.object.key, group.object.value
    if key not in _KEYS:
        errors.append(FieldError(f"{path}.key", f"should be one of {', '.join(_KEYS)}", key))
    if not values:
        errors.append(FieldError(f"{path}.value", "give at least one value; otherwise no pod matches the group", []))
    if key == "annotation":
        return (), list(_pairs(values, f"{path}.value", errors))
    namespaces = values if key == "namespace" else []
    for index, namespace in enumerate(namespaces):
        if namespace in UNTOUCHED_NAMESPACES:
            message = f"pods of {', '.join(UNTOUCHED_NAMESPACES)} are never changed, so that the cluster can start"
            errors.append(FieldError(f"{path}.value[{index}]", message, namespace))
    return namespaces, []


def _pairs(values: Sequence[str], path: str, errors: list[FieldError]) -> Iterator[tuple[str, str]]:
    """Yield annotations from strings like `key: value`; values that look like a boolean or a number stay strings."""
    for index, text in enumerate(values):
        try:
            pair = yaml.load(text, yaml.BaseLoader)  # noqa: S506 - it makes nothing but texts, lists and mappings
        except (yaml.YAMLError, RecursionError):
            pair = None
        [key, value] = next(iter(pair.items())) if isinstance(pair, dict) and len(pair) == 1 else ("", None)
        if isinstance(key, str) and key and isinstance(value, str):
            yield key, value
        else:
            errors.append(FieldError(f"{path}[{index}]", 'should be an annotation, as "key: value"', text))


def _affinity(written: Any, path: str, errors: list[FieldError]) -> dict[str, Any]:
    """Return the affinity of a group, parsed if it is text; empty if the affinity is invalid."""
    found = written or {}
    if isinstance(written, str):
        try:
            found = _read_yaml(written)
        except ValueError as error:
            message = f"should be an affinity: a mapping, or text in JSON or YAML; {error}"
            errors.append(FieldError(path, message, written))
            return {}
    wrong = mistakes(found, Affinity, path)
    errors += wrong or affinity_errors(msgspec.convert(found, Affinity), path)
    return {} if wrong else dict(found)

"""The scheduler configuration: the shape of the YAML of KAI-Scheduler and Volcano, and the defaults.

`actions` is one text with commas; tiers are an ordered list with visual grouping, as in KAI. What the names in it mean
is `planner.configuration`'s to say.
"""

from typing import Any

import msgspec


class PluginOption(msgspec.Struct):
    """One plugin, its arguments, and its switches (Volcano's `enable…`)."""

    name: str
    arguments: dict[str, Any] = {}
    switches: dict[str, Any] = {}


class Tier(msgspec.Struct):
    """Plugins that belong together for the reader."""

    plugins: list[PluginOption] = []


class SchedulerConfig(msgspec.Struct):
    """Which actions run, in which order, and which plugins they ask."""

    actions: str = "enqueue, allocate, consolidate, reclaim, preempt"
    tiers: list[Tier] = msgspec.field(
        default_factory=lambda: [
            Tier([PluginOption(name) for name in ("gang", "priority", "elastic", "proportion")]),
            Tier(
                [
                    PluginOption(name)
                    for name in ("predicates", "dynamicresources", "minruntime", "subgrouporder", "taskorder")
                ]
            ),
            Tier([PluginOption("topology")]),
            Tier([PluginOption("fragmentation")]),
        ]
    )
    sections: dict[str, Any] = {}
    """Whatever else stands in the file, as it stands there."""


def parse(text: str) -> SchedulerConfig:
    """Reads the YAML; empty means the defaults. Raises ValueError that says where and what is wrong, all at once."""
    found, errors = read(text)
    if errors:
        raise ValueError("; ".join(errors))
    return found


def read(text: str) -> tuple[SchedulerConfig, list[str]]:
    """The readable part of the YAML, and the errors of its shape, each with its path."""
    try:
        content = msgspec.yaml.decode(text) if text.strip() else {}
    except msgspec.DecodeError as error:
        return SchedulerConfig(), [f"this is no YAML: {error}"]
    errors: list[str] = []
    fields = _fields(content, "the file", errors)
    found = SchedulerConfig(sections={key: fields[key] for key in fields if key not in {"actions", "tiers"}})
    actions = fields.get("actions") or found.actions
    if isinstance(actions, str):
        found.actions = actions
    else:
        errors.append('actions: must be one text with commas, as in "enqueue, allocate"')
    tiers = [_tier(tier, f"tiers[{number}]", errors) for number, tier in enumerate(_items(fields, "tiers", "", errors))]
    found.tiers = tiers or found.tiers
    return found, errors


def _tier(content: Any, path: str, errors: list[str]) -> Tier:
    fields = _fields(content, path, errors)
    errors.extend(f"{path}.{key}: there is no such field; valid fields: plugins" for key in fields if key != "plugins")
    items = enumerate(_items(fields, "plugins", f"{path}.", errors))
    return Tier([_option(item, f"{path}.plugins[{number}]", errors) for number, item in items])


def _option(content: Any, path: str, errors: list[str]) -> PluginOption:
    """One plugin; one that cannot be read has no name, and keeps its place so that later paths are right."""
    fields = _fields(content, path, errors)
    name = fields.pop("name", None)
    if not isinstance(name, str) or not name:
        errors.append(f"{path}.name: must be the name of a plugin")
        name = ""
    arguments = _fields(fields.pop("arguments", None), f"{path}.arguments", errors)
    return PluginOption(name, arguments, fields)


def _fields(content: Any, path: str, errors: list[str]) -> dict[str, Any]:
    """The fields of a mapping; none if it is empty or something else, which is an error."""
    if content is None:
        return {}
    if not isinstance(content, dict):
        errors.append(f"{path}: must have fields, as in `name: value`, and is {content!r}")
        return {}
    return {str(key): value for key, value in content.items()}


def _items(fields: dict[str, Any], key: str, path: str, errors: list[str]) -> list[Any]:
    """The items of a list; none if it is not there or something else, which is an error."""
    items = fields.get(key)
    if items is None or isinstance(items, list):
        return items or []
    errors.append(f"{path}{key}: must be a list")
    return []

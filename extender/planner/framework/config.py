"""The scheduler configuration: the fields in the YAML files of KAI-Scheduler and Volcano, and the defaults.

`actions` is a comma-separated string. As in KAI-Scheduler, tiers have no effect; they only group plugins in the file.
`planner.configuration` defines the meaning of each name.
"""

from typing import Any

import msgspec

DEFAULT_TIERS = (
    "gang priority elastic proportion",
    "predicates dynamicresources minruntime subgrouporder taskorder",
    "topology",
    "fragmentation preferences",
)
_SEVERAL = "single document"
"""Part of the error message of the YAML parser for a file that contains several documents."""


class PluginOption(msgspec.Struct):
    """One plugin, its arguments, and its switches (Volcano's `enable…`)."""

    name: str
    arguments: dict[str, Any] = {}
    switches: dict[str, Any] = {}


class Tier(msgspec.Struct):
    """A group of plugins."""

    plugins: list[PluginOption] = []


class SchedulerConfig(msgspec.Struct):
    """The configured actions, in the order in which they run, and the configured plugins."""

    actions: str = "repair, enqueue, allocate, consolidate, reclaim, preempt, stalegangeviction"
    tiers: list[Tier] = msgspec.field(
        default_factory=lambda: [Tier([PluginOption(name) for name in names.split()]) for names in DEFAULT_TIERS]
    )
    sections: dict[str, Any] = {}
    """The fields of the file other than actions and tiers, unchanged."""


def parse(text: str) -> SchedulerConfig:
    """Parse the YAML text; an empty text means the defaults. Raises ValueError that lists all errors with paths."""
    found, errors = read(text)
    if errors:
        raise ValueError("; ".join(errors))
    return found


def read(text: str) -> tuple[SchedulerConfig, list[str]]:
    """Return the valid fields of the YAML text, and the errors, each with the path of the invalid field."""
    try:
        content = msgspec.yaml.decode(text) if text.strip() else {}
    except msgspec.DecodeError as error:
        if _SEVERAL in str(error):
            return SchedulerConfig(), ["there are several documents, separated by `---`: keep one"]
        return SchedulerConfig(), [f"the text is not YAML: {error}"]
    errors: list[str] = []
    fields = _fields(content, "the file", errors)
    found = SchedulerConfig(sections={key: fields[key] for key in fields if key not in {"actions", "tiers"}})
    actions = fields.get("actions") or found.actions
    if isinstance(actions, str):
        found.actions = actions
    else:
        errors.append('actions: must be a comma-separated string, such as "enqueue, allocate"')
    tiers = [_tier(tier, f"tiers[{number}]", errors) for number, tier in enumerate(_items(fields, "tiers", "", errors))]
    found.tiers = tiers or found.tiers
    return found, errors


def _tier(content: Any, path: str, errors: list[str]) -> Tier:
    fields = _fields(content, path, errors)
    errors.extend(f"{path}.{key}: there is no such field; valid fields: plugins" for key in fields if key != "plugins")
    items = enumerate(_items(fields, "plugins", f"{path}.", errors))
    return Tier([_option(item, f"{path}.plugins[{number}]", errors) for number, item in items])


def _option(content: Any, path: str, errors: list[str]) -> PluginOption:
    """Parse the entry of one plugin; an invalid entry gets an empty name and keeps its position for later paths."""
    fields = _fields(content, path, errors)
    name = fields.pop("name", None)
    if not isinstance(name, str) or not name:
        errors.append(f"{path}.name: must be the name of a plugin")
        name = ""
    arguments = _fields(fields.pop("arguments", None), f"{path}.arguments", errors)
    return PluginOption(name, arguments, fields)


def _fields(content: Any, path: str, errors: list[str]) -> dict[str, Any]:
    """Return the fields of a mapping; for any other value, report an error and return no fields."""
    if content is None:
        return {}
    if not isinstance(content, dict):
        errors.append(f"{path}: must have fields, as in `name: value`, but is {content!r}")
        return {}
    return {str(key): value for key, value in content.items()}


def _items(fields: dict[str, Any], key: str, path: str, errors: list[str]) -> list[Any]:
    """Return the items of a list; for any other value, report an error and return no items."""
    items = fields.get(key)
    if items is None or isinstance(items, list):
        return items or []
    errors.append(f"{path}{key}: must be a list")
    return []

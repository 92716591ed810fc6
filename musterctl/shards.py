"""Conversion of KAI-Scheduler's SchedulingShard to a configuration of the planner, for `muster config check`."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

from extender.planner.api import report_of
from muster.api.unchecked import mapping

KIND: Final = "SchedulingShard"
GROUP: Final = "kai.scheduler/"
_SECTIONS: Final = ("queueDepthPerAction", "usageDBConfig")
_ARGUMENTS: Final = {
    ("placementStrategy", "cpu"): ("nodeplacement", "cpu"),
    ("placementStrategy", "gpu"): ("nodeplacement", "gpu"),
    ("minRuntime", "preemptMinRuntime"): ("minruntime", "defaultPreemptMinRuntime"),
    ("minRuntime", "reclaimMinRuntime"): ("minruntime", "defaultReclaimMinRuntime"),
    ("kValue",): ("proportion", "kValue"),
}
"""Maps a field of a shard's spec to the planner plugin and the argument with the same meaning."""
_IDLE: Final = {
    "args": "an option of KAI-Scheduler's command line; `muster config print-defaults extender` has Muster's settings",
    "partitionLabelValue": "label nodes and a root queue muster.dev/node-pool (docs/autoscaling.md)",
}


def lines(shard: Mapping[str, Any]) -> tuple[list[str], bool]:
    """Check a shard; return the lines of the report, with field paths, and True if the shard has errors."""
    spec = mapping(shard.get("spec"))
    plugins = _plugins(spec)
    actions = [name for name, each in mapping(spec.get("actions")).items() if _is_enabled(each)]
    content: dict[str, Any] = {key: spec[key] for key in _SECTIONS if key in spec}
    content |= {"actions": ", ".join(actions)} if actions else {}
    content |= {"tiers": [{"plugins": plugins}]} if plugins else {}
    report = report_of(yaml.safe_dump(content))
    places = {f"tiers[0].plugins[{index}]": f"spec.plugins.{each['name']}" for index, each in enumerate(plugins)}
    there = (*places, *(f"{key}" for key in content if key != "tiers"))
    found = [_with_place(line, places) for line in report.lines() if line.removeprefix("error: ").startswith(there)]
    found += [f"spec.{key}: no effect: {why}" for key, why in _unread(spec)]
    return found, bool(report.errors)


def _plugins(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the plugins of the shard in the order of their priority, with arguments from other fields."""
    given = {name: mapping(each) for name, each in mapping(spec.get("plugins")).items() if _is_enabled(each)}
    ordered = sorted(given, key=lambda name: _priority(given[name]), reverse=True)
    arguments = {name: dict(mapping(given[name].get("arguments"))) for name in ordered}
    for path, (plugin, argument) in _ARGUMENTS.items():
        value: Any = spec
        for part in path:
            value = mapping(value).get(part)
        if value is not None:
            arguments.setdefault(plugin, {}).setdefault(argument, value)
    return [{"name": name, "arguments": each} for name, each in arguments.items()]


def _unread(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    known = {"plugins", "actions", *_SECTIONS, *(path[0] for path in _ARGUMENTS)}
    for key in spec:
        if key not in known:
            yield key, _IDLE.get(key, "Muster has no such field")


def _priority(plugin: Mapping[str, Any]) -> int:
    priority = plugin.get("priority")
    return priority if isinstance(priority, int) else 0


def _is_enabled(part: Any) -> bool:
    return mapping(part).get("enabled") is not False


def _with_place(line: str, places: Mapping[str, str]) -> str:
    for path, place in places.items():
        line = line.replace(f"{path}: {place.rpartition('.')[2]}: ", f"{place}: ").replace(path, place)
    return line

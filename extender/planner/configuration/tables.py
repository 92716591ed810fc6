"""Tables of known names and hooks for the documentation, and the default configuration as the text of a file."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from inspect import getdoc
from typing import NamedTuple

import msgspec

from extender.planner.configuration.known import ACTION_ARGUMENTS, ACTIONS, METRICS, SECTIONS, SWITCHES, USAGE_DB, Name
from extender.planner.configuration.knownplugins import PLUGINS
from extender.planner.framework.config import SchedulerConfig
from extender.planner.framework.hooks import HOOKS, Hooks
from extender.planner.framework.registry import Registry, call_of, shape_of

_WITHOUT = "no effect: "


def defaults() -> str:
    """Return the default configuration as the text of a file."""
    found = SchedulerConfig()
    lines = [f'actions: "{found.actions}"', "tiers:"]
    for tier in found.tiers:
        lines.append("- plugins:")
        for option in tier.plugins:
            lines.append(f"  - name: {option.name}")
            if option.arguments:
                lines.append(f"    arguments: {msgspec.json.encode(option.arguments).decode()}")
            lines += [f"    {switch}: {str(value).lower()}" for switch, value in option.switches.items()]
    return "\n".join(lines) + "\n"


class DocumentedTable(NamedTuple):
    """A table of the documentation."""

    header: tuple[str, ...]
    rows: Iterable[tuple[str, ...]]


def tables(registry: Registry) -> dict[str, DocumentedTable]:
    """Return the tables of docs/scheduler-configuration.md, keyed by name, for these actions and plugins."""
    return {
        "actions": DocumentedTable(("action", "defined by", "behaviour in Muster"), _names(ACTIONS, registry.actions)),
        "action-arguments": DocumentedTable(("action", "argument", "behaviour in Muster"), _action_arguments()),
        "plugins": DocumentedTable(("plugin", "defined by", "behaviour in Muster"), _names(PLUGINS, registry.plugins)),
        "plugin-arguments": DocumentedTable(
            ("plugin", "argument", "default", "behaviour in Muster"), _arguments(registry)
        ),
        "switches": DocumentedTable(("switch", "defined by", "default", "hooks that it removes"), _switches()),
        "sections": DocumentedTable(("field", "defined by", "behaviour in Muster"), _sections()),
    }


def hook_table() -> DocumentedTable:
    """Return a table of hooks: each hook's question, its function's Protocol, and the rule for several functions."""
    rows = []
    for each in fields(Hooks):
        function = HOOKS[each.name]
        rule = (getdoc(each.metadata["rule"]) or "").rstrip(".")
        shape = f"`{shape_of(call_of(function))}`"
        rows.append((f"`{each.name}`", each.metadata["asks"], shape, getdoc(function) or "", rule))
    return DocumentedTable(("hook", "question", "function", "answer", "if several plugins register a function"), rows)


def _names(known: Mapping[str, Name], there: Mapping[str, object]) -> Iterator[tuple[str, ...]]:
    """Yield each known action or plugin and its difference in Muster, then each one that exists only in Muster."""
    for name, each in known.items():
        same = (each.ours or name) in there
        yield f"`{name}`", each.of, (each.differs or _as_in(each)) if same else f"{_WITHOUT}{each.without}"
    for name in sorted(there.keys() - known.keys()):
        yield f"`{name}`", "Muster", "exists only in Muster"


def _as_in(known: Name) -> str:
    """Return the table's text for a name that has the same effect in Muster as in the projects that define the name."""
    return f"works as in {known.of.replace(', ', ' and ').replace('KAI', 'KAI-Scheduler')}"


def _action_arguments() -> Iterator[tuple[str, ...]]:
    for action, arguments in ACTION_ARGUMENTS.items():
        for name, known in arguments.items():
            yield f"`{action}`", f"`{name}`", f"{_WITHOUT}{known.without}"


def _arguments(registry: Registry) -> Iterator[tuple[str, ...]]:
    for name, known in PLUGINS.items():
        there = (known.ours or name) in registry.plugins
        for argument, what in known.arguments.items():
            default = "" if what.default is None else f"`{_plain(what.default)}`"
            without = what.without if there else "the plugin itself has no effect"
            yield f"`{name}`", f"`{argument}`", default, f"{_WITHOUT}{without}" if without else _as_in(known)
    for name in sorted(registry.plugins):
        for argument, own in registry.own_arguments(name).items():
            yield f"`{name}`", f"`{argument}`", f"`{own.default}`" if own.default else "", f"Muster's own: {own.means}"


def _switches() -> Iterator[tuple[str, ...]]:
    for name, known in SWITCHES.items():
        hooks = ", ".join(f"`{hook}`" for hook in known.hooks)
        yield f"`{name}`", known.of, f"`{_plain(known.default)}`", hooks or f"{_WITHOUT}{known.without}"


def _sections() -> Iterator[tuple[str, ...]]:
    parts: Mapping[str, tuple[str, ...]] = {"metrics": METRICS, "usageDBConfig": USAGE_DB}
    for name, known in SECTIONS.items():
        yield f"`{name}`", known.of, f"{_WITHOUT}{known.without}" if known.without else known.differs
        for each in parts.get(name, ()):
            yield f"`{name}.{each}`", known.of, f"see the field `{name}`"


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

"""Comparison of a configuration with known names and the registry, which yields the parts to build and a report."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from fnmatch import fnmatchcase
from typing import Any

from extender.planner.configuration.known import (
    ACTION_ARGUMENTS,
    ACTIONS,
    METRICS,
    SECTIONS,
    SWITCHES,
    USAGE_DB,
    KnownPlugin,
    Name,
)
from extender.planner.configuration.knownplugins import PLUGINS
from extender.planner.framework.config import PluginOption, SchedulerConfig
from extender.planner.framework.registry import ACTION_GROUP, PLUGIN_GROUP, Registry


class NameEffect(Enum):
    """The difference between a name's effects in Muster and in the project that defines the name."""

    DIFFERENT = "different"
    NONE = "no effect"


@dataclass(frozen=True, slots=True)
class Finding:
    """A name in a configuration file that has another effect in Muster than in the project that defined it."""

    path: str
    """Path in the configuration file, e.g. `tiers[0].plugins[1].enablePreemptable`."""
    name: str
    effect: NameEffect
    why: str
    """How the effect differs in Muster, as a sentence without its full stop."""

    def __str__(self) -> str:
        """Return the finding as one line of text."""
        name = "" if self.path.endswith(self.name) else f"{self.name}: "
        return f"{self.path}: {name}{self.effect.value}: {self.why}"


@dataclass(slots=True)
class ConfigurationReport:
    """The findings and errors of one configuration file."""

    findings: list[Finding] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    """Errors as sentences that begin with the path in the file; a configuration with errors is not used."""

    def differs(self, path: str, name: str, why: str) -> None:
        """Report that a name has another meaning in Muster."""
        self.findings.append(Finding(path, name, NameEffect.DIFFERENT, why))

    def idle(self, path: str, name: str, why: str) -> None:
        """Report that a name has no effect in Muster."""
        self.findings.append(Finding(path, name, NameEffect.NONE, why))

    def unknown(self, path: str, what: str, name: str, valid: Iterable[str], *, later: bool = False) -> None:
        """Report an unknown name; with `later`, a package that was installed since this process started defines it."""
        known = ", ".join(sorted(valid)) or "none"
        more = f"; {INSTALLED_LATER}" if later else ""
        self.errors.append(f"{path}: there is no {what} {name!r}; valid {what}s: {known}{more}")

    def findings_of_kind(self, effect: NameEffect) -> list[Finding]:
        """Return the findings with this effect."""
        return [finding for finding in self.findings if finding.effect is effect]

    def lines(self) -> Iterator[str]:
        """Yield the lines of the report: errors, then names with different meanings, then names without effect."""
        yield from (f"error: {error}" for error in self.errors)
        for effect in (NameEffect.DIFFERENT, NameEffect.NONE):
            yield from (str(finding) for finding in self.findings_of_kind(effect))


INSTALLED_LATER = "the package was installed after this process started: restart the process"
ENQUEUE, GANG = "enqueue", "gang"
CONSTRAINTS = ("predicates", "dynamicresources", "topology")
"""Plugins that enforce requirements of pods and gangs, and are in every configuration."""
_VOTES = frozenset({"job_enqueueable", "job_enqueued"})
_REQUIRED = "the plugin is always active: requirements of pods and gangs hold under every configuration"
_CONSTRAINING = frozenset({"pre_predicate", "predicate", "neighbour_predicate", "subset_nodes", "closest_domain"})
"""Hooks of the constraint plugins that no switch can remove."""


@dataclass(frozen=True, slots=True)
class PluginUse:
    """One plugin to build."""

    name: str
    path: str
    """Path in the configuration file; empty for a plugin that the file does not name."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    off: frozenset[str] = frozenset()
    """Hooks that are switched off for the plugin."""


@dataclass(slots=True)
class Resolved:
    """The meaning of a configuration in Muster."""

    actions: list[str] = field(default_factory=list)
    plugins: list[PluginUse] = field(default_factory=list)
    report: ConfigurationReport = field(default_factory=ConfigurationReport)
    votes: bool = True
    """True if plugins vote on the admission of gangs. As in Volcano, plugins vote only if the file names the action
    `enqueue`."""


def resolve(config: SchedulerConfig, registry: Registry) -> Resolved:
    """Return the report, and the actions and plugins to build in order; each plugin checks its own arguments later."""
    found = Resolved()
    _actions(config, registry, found)
    for number, tier in enumerate(config.tiers):
        for position, option in enumerate(tier.plugins):
            if option.name:
                _plugin(option, f"tiers[{number}].plugins[{position}]", registry, found)
    if all(use.name != GANG for use in found.plugins):
        found.plugins.insert(0, PluginUse(GANG, ""))
        found.report.differs(
            "tiers", GANG, "the plugin is always active, and first: members start together or not at all"
        )
    for name in CONSTRAINTS:
        if name in registry.plugins and all(use.name != name for use in found.plugins):
            found.plugins.append(PluginUse(name, ""))
            found.report.differs("tiers", name, _REQUIRED)
    if not found.votes:
        found.plugins = [replace(use, off=use.off | _VOTES) for use in found.plugins]
    _sections(config, registry, found.report)
    _usage(config, found)
    return found


def _actions(config: SchedulerConfig, registry: Registry, found: Resolved) -> None:
    report = found.report
    for name in (part.strip() for part in config.actions.split(",")):
        known = ACTIONS.get(name)
        ours = (known.ours if known else "") or name
        if ours not in registry.actions:
            if known:
                report.idle("actions", name, known.without)
            else:
                later = registry.came_later(ACTION_GROUP, name)
                report.unknown("actions", "action", name, {*registry.actions, *ACTIONS}, later=later)
        elif ours in found.actions:
            report.differs("actions", name, f"action {ours} runs once in a cycle, at its first position")
        else:
            found.actions.append(ours)
            if known and known.differs:
                report.differs("actions", name, known.differs)
    if ENQUEUE not in found.actions and not report.errors:
        found.actions.insert(0, ENQUEUE)
        found.votes = False
        report.differs(
            "actions",
            ENQUEUE,
            "the action always runs first, and calls no plugin: pods are created only for admitted gangs",
        )


def _plugin(option: PluginOption, path: str, registry: Registry, found: Resolved) -> None:
    known, report = PLUGINS.get(option.name, KnownPlugin()), found.report
    ours = known.ours or option.name
    there = ours in registry.plugins
    if not there and option.name not in PLUGINS:
        later = registry.came_later(PLUGIN_GROUP, option.name)
        report.unknown(path, "plugin", option.name, {*registry.plugins, *PLUGINS}, later=later)
        return
    if not there:
        report.idle(path, option.name, known.without)
    elif known.differs:
        report.differs(path, option.name, known.differs)
    arguments = _arguments(option, known, path, report, there=there)
    off = _switches(option, known, path, report, there=there)
    if not there:
        return
    if any(use.name == ours for use in found.plugins):
        report.differs(path, option.name, f"plugin {ours} is used once, at its first position")
        return
    found.plugins.append(PluginUse(ours, path, arguments, off))


def _arguments(
    option: PluginOption, known: KnownPlugin, path: str, report: ConfigurationReport, *, there: bool
) -> dict[str, Any]:
    """Return the arguments to pass to the plugin; the plugin itself rejects unknown arguments."""
    result = {}
    for name, value in option.arguments.items():
        argument, where = known.argument(name), f"{path}.arguments.{name}"
        if argument is None and not there:
            report.unknown(where, f"argument of plugin {option.name}", name, known.arguments)
        elif argument is None or not argument.without:
            result[name] = value
        elif there:
            report.idle(where, name, argument.without)
    return result


def _switches(
    option: PluginOption, known: KnownPlugin, path: str, report: ConfigurationReport, *, there: bool
) -> frozenset[str]:
    """Return the hooks that the configuration's switches remove from the plugin."""
    off: set[str] = set()
    kept = _CONSTRAINING if (known.ours or option.name) in CONSTRAINTS else frozenset()
    for name, value in option.switches.items():
        where = f"{path}.{name}"
        switch = known.switches.get(name) or SWITCHES.get(name)
        if switch is None:
            report.unknown(where, "field", name, {"name", "arguments", *SWITCHES})
        elif not isinstance(value, bool):
            report.errors.append(f"{where}: must be true or false, but is {value!r}")
        elif value != switch.default:
            off.update(set(switch.hooks) - kept)
            if there and kept & set(switch.hooks):
                report.idle(where, name, "requirements of pods and gangs hold under every configuration")
            elif there and switch.differs:
                report.differs(where, name, switch.differs)
            elif there and not switch.hooks:
                report.idle(where, name, switch.without)
    return frozenset(off)


def _sections(config: SchedulerConfig, registry: Registry, report: ConfigurationReport) -> None:
    for name, content in config.sections.items():
        known = SECTIONS.get(name)
        if known is None:
            report.unknown(name, "field", name, {"actions", "tiers", *SECTIONS})
        elif name == "configurations":
            _action_arguments(content, registry, report)
        else:
            if content and known.without:
                report.idle(name, name, known.without)
            elif content:
                report.differs(name, name, known.differs)
            _check_fields(name, content, registry, report)


def _usage(config: SchedulerConfig, found: Resolved) -> None:
    """Pass the half-life of usage, which KAI-Scheduler's files set outside the plugins, to plugin proportion."""
    content = config.sections.get("usageDBConfig")
    params = content.get("usageParams") if isinstance(content, dict) else None
    half_life = params.get("halfLifePeriod") if isinstance(params, dict) else None
    if str(half_life or "0") in {"0", "0s"}:
        return
    found.plugins = [
        replace(use, arguments={"halfLife": half_life, **use.arguments}) if use.name == "proportion" else use
        for use in found.plugins
    ]


def _check_fields(name: str, content: Any, registry: Registry, report: ConfigurationReport) -> None:
    valid = {
        "metrics": METRICS,
        "usageDBConfig": USAGE_DB,
        "queueDepthPerAction": tuple({*registry.actions, *ACTIONS}),
    }[name]
    for field_name in _flat(content):
        if not any(fnmatchcase(field_name, pattern) for pattern in valid):
            report.unknown(f"{name}.{field_name}", "field", field_name, valid)


def _flat(content: Any, prefix: str = "") -> list[str]:
    """Return the dotted paths of all fields in a mapping, including nested mappings."""
    if not isinstance(content, dict):
        return [prefix] if prefix else []
    return [name for key, value in content.items() for name in _flat(value, f"{prefix}.{key}" if prefix else str(key))]


def _action_arguments(content: Any, registry: Registry, report: ConfigurationReport) -> None:
    """Report Volcano's arguments of actions, which have no effect."""
    for number, item in enumerate(content if isinstance(content, list) else []):
        path = f"configurations[{number}]"
        fields = item if isinstance(item, dict) else {}
        name, arguments = fields.get("name"), fields.get("arguments") or {}
        if name not in registry.actions and name not in ACTIONS:
            report.unknown(f"{path}.name", "action", str(name), {*registry.actions, *ACTIONS})
            continue
        known: dict[str, Name] = ACTION_ARGUMENTS.get(str(name), {})
        for argument in arguments if isinstance(arguments, dict) else {}:
            where = f"{path}.arguments.{argument}"
            if argument in known:
                report.idle(where, argument, known[argument].without)
            else:
                report.unknown(where, f"argument of action {name}", argument, known)

"""Registry of plugins and actions by name, from Muster and from the entry points of installed packages."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from importlib.metadata import entry_points
from inspect import Parameter, Signature, getdoc, signature
from math import isfinite
from typing import Any, NamedTuple, Protocol

from extender.planner.framework.hooks import HOOKS
from extender.planner.framework.inputs import CycleInputs
from extender.planner.framework.session import Session
from extender.planner.framework.snapshot import take_snapshot
from extender.planner.state.state import PlannerState
from muster.resources.runtime import parse_duration_s

PLUGIN_GROUP = "muster.extender.plugins"
ACTION_GROUP = "muster.extender.actions"


class PlannerPlugin(Protocol):
    """Interface of a plugin, which is built once from its arguments and may keep caches between cycles."""

    @property
    def name(self) -> str:
        """The plugin's name in configurations."""

    def on_session_open(self, session: Session) -> None:
        """Read the snapshot and register hooks; called in every cycle, before any action."""

    def on_session_close(self, session: Session) -> None:
        """Store the data that the next cycle needs, and drop the session."""


class Action(Protocol):
    """Interface of an action, one step of a cycle."""

    @property
    def name(self) -> str:
        """The action's name in configurations."""

    def execute(self, session: Session) -> None:
        """Make decisions about the session's snapshot, which includes the changes that earlier actions made."""


class OwnArgument(NamedTuple):
    """Documentation of a plugin's argument that exists only in Muster, for `OWN_ARGUMENTS` of the plugin's class."""

    default: str
    means: str


PluginBuilder = Callable[[Mapping[str, Any]], PlannerPlugin]
"""Function that builds a plugin from its arguments; raises ValueError for an unknown argument or an invalid value."""
ActionBuilder = Callable[[], Action]


class Registry:
    """Builders of plugins and actions by name, including builders of installed packages."""

    def __init__(
        self, plugins: Mapping[str, PluginBuilder], actions: Mapping[str, ActionBuilder], *, installed: bool = True
    ) -> None:
        self.plugins: dict[str, PluginBuilder] = dict(plugins) | (_installed(PLUGIN_GROUP) if installed else {})
        self.actions: dict[str, ActionBuilder] = dict(actions) | (_installed(ACTION_GROUP) if installed else {})
        self._fitting: set[str] = set()
        """Names of plugins whose functions have been found to match the Protocols of their hooks."""

    def plugin(self, name: str, arguments: Mapping[str, Any]) -> PlannerPlugin:
        """Build a known plugin.

        Raises ValueError for an invalid argument, or for a function that does not match its hook's Protocol.
        """
        build = self.plugins[name]
        if name not in self._fitting:
            if wrong := [f"plugin {name!r}: {each}" for each in misfits(build(arguments))]:
                raise ValueError("; ".join(wrong))
            self._fitting.add(name)
        return build(arguments)

    def came_later(self, group: str, name: str) -> bool:
        """Return True if a package with this plugin or action was installed after this registry was created."""
        return any(entry.name == name for entry in entry_points(group=group))

    def own_arguments(self, name: str) -> Mapping[str, OwnArgument]:
        """Return the arguments that a plugin's class lists in `OWN_ARGUMENTS`."""
        found: Mapping[str, OwnArgument] = getattr(self.plugins.get(name), "OWN_ARGUMENTS", {})
        return found


class PlainPlugin:
    """Optional base class for plugins without arguments that do nothing at the end of a cycle."""

    name = ""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        refuse_arguments(self.name, arguments)

    def on_session_close(self, session: Session) -> None:
        """Do nothing."""


def misfits(plugin: PlannerPlugin) -> Iterator[str]:
    """Yield a sentence for each function of a plugin that cannot be called like its hook's Protocol.

    The check calls the plugin with an empty cluster; afterwards, the plugin must not be used. Functions without a
    signature are not checked, nor are functions that the plugin registers only for some clusters.
    """
    session = Session(CycleInputs(snapshot=take_snapshot(PlannerState()), now=0.0))
    with suppress(Exception):  # the first cycle reports this defect of the plugin
        plugin.on_session_open(session)
    for name, protocol in HOOKS.items():
        asked = call_of(protocol)
        for function in session.hooks.named(name).functions:
            with suppress(ValueError):
                found = signature(function)
                if not _takes(found, asked):
                    yield (
                        f"a function for hook {name} takes {shape_of(found)}, and is called with {shape_of(asked)}; "
                        f"its answer: {getdoc(protocol)}"
                    )


def call_of(protocol: Any) -> Signature:
    """Return the signature with which a hook calls its functions, as defined by the hook's Protocol."""
    method = signature(protocol.__call__)
    return method.replace(parameters=[*method.parameters.values()][1:])


def shape_of(found: Signature) -> str:
    """Return the names of a function's parameters as text, such as `(gang, victim)`."""
    bare = (each.replace(annotation=Parameter.empty, default=Parameter.empty) for each in found.parameters.values())
    return f"({', '.join(map(str, bare))})"


def _takes(found: Signature, asked: Signature) -> bool:
    named = {each.name: None for each in asked.parameters.values() if each.kind is Parameter.KEYWORD_ONLY}
    try:
        found.bind(*[None] * (len(asked.parameters) - len(named)), **named)
    except TypeError:
        return False
    return True


def refuse_arguments(plugin: str, arguments: Mapping[str, Any], valid: tuple[str, ...] = ()) -> None:
    """Raise ValueError for unknown arguments of a plugin."""
    unknown = sorted(set(arguments) - set(valid))
    if unknown:
        known = ", ".join(valid) or "none"
        raise ValueError(f"plugin {plugin!r} has no argument {', '.join(map(repr, unknown))}; valid arguments: {known}")


def number(plugin: str, arguments: Mapping[str, Any], name: str, default: float) -> float:
    """Return an argument as a number, which may be quoted. Raises ValueError if the argument is no number."""
    value = arguments.get(name, default)
    try:
        result = float("nan") if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        result = float("nan")
    if not isfinite(result) or result < 0:
        raise ValueError(f"plugin {plugin!r}: {name} is {value!r}; it must be a number that is not negative")
    return result


def duration_s(
    plugin: str,
    arguments: Mapping[str, Any],
    name: str,
    default_s: float,
    parse: Callable[[str], float] = parse_duration_s,
) -> float:
    """Return an argument that is a duration, in seconds. Raises ValueError if the argument is no duration."""
    if name not in arguments:
        return default_s
    try:
        return parse(str(arguments[name]))
    except ValueError as error:
        raise ValueError(f"plugin {plugin!r}: {name}: {error}") from error


def _installed(group: str) -> dict[str, Any]:
    return {entry.name: entry.load() for entry in entry_points(group=group)}

"""Plugins and actions by name: the built-in ones and those of installed packages (entry points)."""

from collections.abc import Callable, Collection, Mapping
from importlib.metadata import entry_points
from math import isfinite
from typing import Any, NamedTuple, Protocol

from extender.planner.framework.session import Session

PLUGIN_GROUP = "muster.extender.plugins"
ACTION_GROUP = "muster.extender.actions"


class Plugin(Protocol):
    """One plugin; built once from its arguments, so it may keep caches from one cycle to the next."""

    @property
    def name(self) -> str:
        """As the configuration calls it."""

    def on_session_open(self, session: Session) -> None:
        """Looks at the snapshot and registers hooks; called anew in every cycle, before any action."""

    def on_session_close(self, session: Session) -> None:
        """Keeps what the next cycle needs, and lets go of the session: the cycle is over."""


class Action(Protocol):
    """One step of a cycle."""

    @property
    def name(self) -> str:
        """As the configuration calls it."""

    def execute(self, session: Session) -> None:
        """Decides over the session's snapshot, upon what the actions before it have left there."""


class OwnArgument(NamedTuple):
    """The documentation of an argument that no other project has; a plugin's class lists them."""

    default: str
    """Empty: none."""
    means: str


PluginBuilder = Callable[[Mapping[str, Any]], Plugin]
"""Builds a plugin from its arguments; raises ValueError that lists the valid ones for an unknown argument."""
ActionBuilder = Callable[[], Action]


class Registry:
    """How to make each plugin and action, by the name that configurations use; other packages may add some."""

    def __init__(
        self, plugins: Mapping[str, PluginBuilder], actions: Mapping[str, ActionBuilder], *, installed: bool = True
    ) -> None:
        self._plugins = dict(plugins) | (_installed(PLUGIN_GROUP) if installed else {})
        self._actions = dict(actions) | (_installed(ACTION_GROUP) if installed else {})

    def plugin(self, name: str, arguments: Mapping[str, Any]) -> Plugin:
        """Builds a plugin. Raises ValueError for a name or argument that does not exist."""
        return _named(self._plugins, "plugin", name)(arguments)  # type: ignore[no-any-return]

    def action(self, name: str) -> Action:
        """Builds an action. Raises ValueError for a name that does not exist."""
        return _named(self._actions, "action", name)()  # type: ignore[no-any-return]

    def own_arguments(self, name: str) -> Mapping[str, OwnArgument]:
        """The arguments that a plugin's class lists in `OWN_ARGUMENTS`; none of one that does not exist."""
        found: Mapping[str, OwnArgument] = getattr(self._plugins.get(name), "OWN_ARGUMENTS", {})
        return found

    @property
    def plugins(self) -> Collection[str]:
        """The names of the plugins there are."""
        return self._plugins.keys()

    @property
    def actions(self) -> Collection[str]:
        """The names of the actions there are."""
        return self._actions.keys()


class PlainPlugin:
    """Base of the built-in plugins, most of which take no arguments and have nothing to do when a cycle ends.

    Inheriting is optional: a plugin is any class with the three parts of `Plugin`.
    """

    name = ""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        refuse_arguments(self.name, arguments)

    def on_session_close(self, session: Session) -> None:
        """Does nothing: what was registered ends with the session."""


def refuse_arguments(plugin: str, arguments: Mapping[str, Any], valid: tuple[str, ...] = ()) -> None:
    """Raises ValueError if there is an argument that the plugin does not know."""
    unknown = sorted(set(arguments) - set(valid))
    if unknown:
        known = ", ".join(valid) or "none"
        raise ValueError(f"plugin {plugin!r} has no argument {', '.join(map(repr, unknown))}; valid arguments: {known}")


def number(plugin: str, arguments: Mapping[str, Any], name: str, default: float) -> float:
    """An argument that is a number, also one in quotation marks; ValueError says what it is instead."""
    value = arguments.get(name, default)
    try:
        result = float("nan") if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        result = float("nan")
    if not isfinite(result) or result < 0:
        raise ValueError(f"plugin {plugin!r}: {name} is {value!r}; it must be a number that is not negative")
    return result


def _named(builders: Mapping[str, Any], what: str, name: str) -> Any:
    if name not in builders:
        raise ValueError(f"there is no {what} {name!r}; valid {what}s: {', '.join(sorted(builders))}")
    return builders[name]


def _installed(group: str) -> dict[str, Any]:
    return {entry.name: entry.load() for entry in entry_points(group=group)}

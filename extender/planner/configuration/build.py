"""Builder of the actions and plugins of successive configurations; objects with unchanged settings are reused."""

from collections.abc import Mapping
from typing import Any

from extender.planner.configuration.resolve import ConfigurationReport, PluginUse, resolve
from extender.planner.framework.config import SchedulerConfig, read
from extender.planner.framework.registry import Action, PlannerPlugin, Registry
from extender.planner.framework.session import Session


class SwitchedPlugin:
    """A plugin for which the configuration has switched off some hooks."""

    def __init__(self, plugin: PlannerPlugin, off: frozenset[str]) -> None:
        self.plugin = plugin
        self._off = off

    @property
    def name(self) -> str:
        """The plugin's name in configurations."""
        return self.plugin.name

    def on_session_open(self, session: Session) -> None:
        """Let the plugin register its functions, then remove the functions for hooks that are switched off."""
        before = [(hook, len(hook.functions)) for hook in map(session.hooks.named, self._off)]
        self.plugin.on_session_open(session)
        for hook, number in before:
            del hook.functions[number:]

    def on_session_close(self, session: Session) -> None:
        """Notify the plugin of the end of the cycle."""
        self.plugin.on_session_close(session)


class Assembly:
    """Builder of successive configurations.

    An action stays the same object as long as it is configured, and a plugin as long as its arguments are the same. The
    caches of unchanged actions and plugins therefore survive a change of the configuration file. A plugin whose
    arguments have changed is created again; its method `take_over`, if it has one, receives the previous plugin.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._actions: dict[str, Action] = {}
        self._plugins: dict[str, tuple[Mapping[str, Any], PlannerPlugin]] = {}
        """Maps a plugin's name to its arguments and to the plugin built from them."""

    def build(self, config: SchedulerConfig) -> tuple[list[Action], list[PlannerPlugin]]:
        """Return the actions and plugins of a configuration. Raises ValueError, which lists all errors."""
        resolved = resolve(config, self._registry)
        errors = resolved.report.errors
        built = self._build_plugins(resolved.plugins, errors)
        if errors:
            raise ValueError("; ".join(errors))
        for name, (_, plugin) in built.items():
            known = self._plugins.get(name)
            if known is not None and known[1] is not plugin and hasattr(plugin, "take_over"):
                plugin.take_over(known[1])
        self._actions = {name: self._actions.get(name) or self._registry.actions[name]() for name in resolved.actions}
        self._plugins = built
        plugins = [(built[use.name][1], use.off) for use in resolved.plugins]
        return list(self._actions.values()), [SwitchedPlugin(each, off) if off else each for each, off in plugins]

    def _build_plugins(
        self, uses: list[PluginUse], errors: list[str]
    ) -> dict[str, tuple[Mapping[str, Any], PlannerPlugin]]:
        """Return the plugins, created again if their arguments have changed; add invalid arguments to the errors."""
        built = {}
        for use in uses:
            known = self._plugins.get(use.name)
            if known is not None and known[0] == use.arguments:
                built[use.name] = known
                continue
            try:
                plugin = self._registry.plugin(use.name, use.arguments)
            except ValueError as error:
                errors.append(f"{use.path}: {error}")
                continue
            built[use.name] = use.arguments, plugin
        return built


def examine(text: str, registry: Registry) -> ConfigurationReport:
    """Check the fields, names and arguments of a configuration file, and return the report."""
    config, errors = read(text)
    resolved = resolve(config, registry)
    errors += resolved.report.errors
    resolved.report.errors = errors
    if errors:  # no findings about the defaults, which would hide the errors
        resolved.report.findings = [each for each in resolved.report.findings if _stands_in(each.path, config)]
    Assembly(registry)._build_plugins(resolved.plugins, errors)  # noqa: SLF001 - the same class of this module
    return resolved.report


def _stands_in(path: str, config: SchedulerConfig) -> bool:
    """Return True for a field that the configuration file sets to a value other than the default."""
    default = SchedulerConfig()
    return not (
        (path == "actions" and config.actions == default.actions)
        or (path.startswith("tiers") and config.tiers == default.tiers)
    )

"""The scheduler configuration: `actions` and `tiers`, in the YAML shape of KAI-Scheduler and Volcano.

Tiers are an ordered list with visual grouping, as in KAI. Unknown fields, names and arguments are errors.
"""

from typing import Any

import msgspec

from extender.framework.registry import Action, Plugin, Registry


class PluginOption(msgspec.Struct, forbid_unknown_fields=True):
    """One plugin and its arguments."""

    name: str
    arguments: dict[str, Any] = {}


class Tier(msgspec.Struct, forbid_unknown_fields=True):
    """Plugins that belong together for the reader."""

    plugins: list[PluginOption] = []


class SchedulerConfig(msgspec.Struct, forbid_unknown_fields=True):
    """Which actions run, in which order, and which plugins they ask."""

    actions: str = "enqueue, allocate, consolidate, reclaim, preempt"
    tiers: list[Tier] = msgspec.field(
        default_factory=lambda: [
            Tier([PluginOption(name) for name in ("gang", "priority", "elastic", "proportion")]),
            Tier([PluginOption(name) for name in ("predicates", "minruntime", "subgrouporder", "taskorder")]),
        ]
    )


def parse(text: str) -> SchedulerConfig:
    """Reads the YAML; empty means the defaults. Raises ValueError that says where and what is wrong."""
    if not text.strip():
        return SchedulerConfig()
    try:
        return msgspec.yaml.decode(text, type=SchedulerConfig)
    except msgspec.ValidationError as error:
        fields = "actions, tiers[].plugins[].name, tiers[].plugins[].arguments"
        raise ValueError(f"scheduler configuration: {error}; valid fields: {fields}") from error


def build(config: SchedulerConfig, registry: Registry) -> tuple[list[Action], list[Plugin]]:
    """The actions and plugins of a configuration. Raises ValueError with all that is wrong at once."""
    errors: list[str] = []
    actions: list[Action] = []
    plugins: list[Plugin] = []
    for name in (part.strip() for part in config.actions.split(",")):
        try:
            actions.append(registry.action(name))
        except ValueError as error:
            errors.append(f"actions: {error}")
    for number, tier in enumerate(config.tiers):
        for position, option in enumerate(tier.plugins):
            try:
                plugins.append(registry.plugin(option.name, option.arguments))
            except ValueError as error:
                errors.append(f"tiers[{number}].plugins[{position}]: {error}")
    if errors:
        raise ValueError("; ".join(errors))
    return actions, plugins

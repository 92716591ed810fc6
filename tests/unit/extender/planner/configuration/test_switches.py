"""Switches take hooks from a plugin, and what did not change outlives a change of the configuration."""

from typing import Any

import pytest
from extender_world import World
from topology_world import Racks

from extender.planner.actions.allocate import Allocate
from extender.planner.actions.enqueue import Enqueue
from extender.planner.configuration.build import Assembly, examine
from extender.planner.configuration.known import SWITCHES
from extender.planner.cycle import parts_of, registry
from extender.planner.framework import config
from extender.planner.framework.hooks import HOOKS
from extender.planner.framework.registry import Registry
from extender.planner.framework.session import Session
from extender.planner.plugins.order import Elastic


def text(*plugins: str, actions: str = "enqueue, allocate") -> str:
    """A configuration with these plugins."""
    return f"actions: {actions}\ntiers: [{{plugins: [{', '.join(plugins)}]}}]"


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("name", SWITCHES)
def test_every_hook_of_a_switch_exists_and_is_taken(name: str, *, on: bool) -> None:
    """A plugin that registers for all hooks gets all but those, unless the switch is at its default."""

    class All:
        name = "all"

        def on_session_open(self, session: Session) -> None:
            for hook in HOOKS:
                session.hooks.named(hook).add(lambda *_, **__: None)

        def on_session_close(self, session: Session) -> None:
            pass

    assert set(SWITCHES[name].hooks) <= set(HOOKS)
    made = Registry({"all": lambda _: All(), "gang": Elastic}, {"enqueue": Enqueue, "allocate": Allocate})
    world = World()
    configuration = config.parse(text(f"{{name: all, {name}: {str(on).lower()}}}"))
    _, plugins = Assembly(made).build(configuration)
    world.plugins = [plugin for plugin in plugins if plugin.name == "all"]
    session = world.session()
    left = {hook for hook in HOOKS if getattr(session.hooks, hook).functions}
    assert left == set(HOOKS) - (set(SWITCHES[name].hooks) if on != SWITCHES[name].default else set())


def test_what_did_not_change_is_the_same_object() -> None:
    """So that caches and counts outlive the change; other arguments make a new plugin, which may take over."""

    class Counting:
        name = "counting"

        def __init__(self, arguments: Any) -> None:
            self.arguments, self.count = arguments, 0

        def take_over(self, before: "Counting") -> None:
            self.count = before.count

        def on_session_open(self, session: Session) -> None:
            del session
            self.count += 1

        def on_session_close(self, session: Session) -> None:
            pass

    own = registry()
    assembly = Assembly(Registry({**own.plugins, "counting": Counting}, own.actions))
    first = assembly.build(config.parse(text("{name: gang}", "{name: counting}")))
    first[1][1].count = 7  # type: ignore[attr-defined]
    second = assembly.build(config.parse(text("{name: counting}", "{name: gang}", actions="enqueue, allocate")))
    assert second[1][0] is first[1][1]
    assert second[0][-1] is first[0][-1]
    third = assembly.build(config.parse(text("{name: gang}", "{name: counting, arguments: {a: 1}}")))
    assert third[1][1] is not first[1][1]
    assert third[1][1].count == 7  # type: ignore[attr-defined]


@pytest.mark.parametrize(("names", "actions"), [
    pytest.param(["priority", "predicates"], "allocate", id="KAI-Scheduler's files name neither gang nor enqueue"),
    pytest.param(["gang", "priority", "gang"], '"allocate, allocate"', id="what is named twice is there once"),
])  # fmt: skip
def test_gang_and_enqueue_are_there_in_any_case(names: list[str], actions: str) -> None:
    """Both come first; Volcano would let an action run twice, and a gang that was placed would be placed again."""
    made, plugins = parts_of(config.parse(text(*(f"{{name: {name}}}" for name in names), actions=actions)))
    assert [action.name for action in made][1:-3] == ["enqueue", "allocate", "recall"]
    assert [plugin.name for plugin in plugins] == ["gang", "priority", "predicates", "dynamicresources", "topology"]


def test_no_switch_takes_what_pods_and_gangs_require() -> None:
    """kube-scheduler would refuse what the planner then places; topology it does not know at all."""
    off = "{name: predicates, enablePredicate: false}", "{name: network-topology-aware, enablePredicate: false}"
    report = examine(text(*off), registry())
    assert not report.errors
    found = [(each.path, each.effect.value) for each in report.findings if "enablePredicate" in each.path]
    assert found == [(f"tiers[0].plugins[{number}].enablePredicate", "no effect") for number in range(2)]
    world = Racks(1, 2, 2)
    _, world.plugins = parts_of(config.parse(text(*off)))
    world.node("b0r0n0", unschedulable=True)
    key = world.asks("a", 2, 8, network=None, required="rack")
    world.plan()
    assert world.placed(key)["worker"] == ["b0r1n0", "b0r1n1"]

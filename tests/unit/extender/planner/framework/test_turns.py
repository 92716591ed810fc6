"""Whose turn it is: keys and plain comparisons say the same, also while gangs are placed."""

from collections.abc import Mapping
from typing import Any

from extender_world import World, of
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.planner.actions.allocate import Allocate
from extender.planner.framework import decisions
from extender.planner.framework.ordering import Keyed
from extender.planner.framework.registry import PlannerPlugin
from extender.planner.framework.session import Session
from extender.planner.plugins.order import Elastic, GangPlugin, Priority
from extender.planner.plugins.predicates import Predicates
from extender.planner.plugins.proportion import Proportion
from extender.planner.state.access import parents_of
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.volcano.scheduling import Queue, QueueSpec
from muster.volcano.access import lineage

PARENTS = {"a": "root", "b": "root", "a1": "a", "a2": "a", "b1": "b", "b11": "b1", "b12": "b1"}
BUILT_IN = (GangPlugin, Priority, Elastic, Proportion, Predicates)
AMOUNT = st.integers(0, 20)


class Compared:
    """A plugin of which nothing but its comparisons is known, as if it were somebody else's."""

    def __init__(self, plugin: PlannerPlugin) -> None:
        self.name = plugin.name
        self._plugin = plugin

    def on_session_open(self, session: Session) -> None:
        """What the plugin registers, and only functions of two gangs for its orders."""
        self._plugin.on_session_open(session)
        for hook in (session.hooks.job_order, session.hooks.queue_order):
            hook.functions = [fn.compare if isinstance(fn, Keyed) else fn for fn in hook.functions]

    def on_session_close(self, session: Session) -> None:
        """Passed on."""
        self._plugin.on_session_close(session)


def order(plugins: list[PlannerPlugin], queues: Mapping[str, Any], gangs: list[tuple[str, int, int]]) -> list[str]:
    """Names of gangs in the order in which they were tried."""
    world = World(checked=False)
    world.plugins = plugins
    world.nodes(2)
    for name, spec in queues.items():
        world.queue(name, parent=PARENTS[name], **spec)
    for number, (queue, pods, cpu) in enumerate(gangs):
        key = world.gang(f"g{number}", {"worker": (pods, {"nvidia.com/gpu": 1, "cpu": cpu})}, queue=queue)
        if number % 5 == 0:
            world.pod(key, "worker", 0, {"nvidia.com/gpu": 1, "cpu": cpu}, node="node-0", phase="Running")
    session = world.session(Allocate())
    return [each.gang.key for kind in (decisions.Unschedulable, decisions.Place) for each in of(session, kind)]


SPECS = st.fixed_dictionaries({
    "weight": st.integers(1, 3), "priority": st.integers(0, 1),
    "deserved": st.fixed_dictionaries({"nvidia.com/gpu": AMOUNT, "cpu": AMOUNT}),
})  # fmt: skip


@given(
    specs=st.fixed_dictionaries(dict.fromkeys(PARENTS, SPECS)),
    gangs=st.lists(st.tuples(st.sampled_from([*PARENTS]), st.integers(1, 4), st.integers(0, 4)), max_size=16),
)
def test_a_key_orders_as_its_comparison_does(specs: dict[str, Any], gangs: list[tuple[str, int, int]]) -> None:
    """Gangs are tried, and placed, in the same order; also where one queue is above the other."""
    keyed = order([make({}) for make in BUILT_IN], specs, gangs)
    assert keyed == order([Compared(make({})) for make in BUILT_IN], specs, gangs)


@settings(deadline=None)
@given(st.lists(st.sampled_from(["", "root", "q0", "q1", "q2", "q3", "missing"]), min_size=1, max_size=4))
def test_every_queue_is_below_the_root_once(above: list[str]) -> None:
    """Whatever its parents are: a missing one is not on the way."""
    queues = {
        f"q{number}": Queue(metadata=ObjectMeta(name=f"q{number}"), spec=QueueSpec(parent=parent))
        for number, parent in enumerate(above)
    }
    parents = parents_of(queues)
    for name in queues:
        way = [name]
        while way[-1] != "root":
            way.append(parents[way[-1]])
            assert len(set(way)) == len(way)
        assert set(way) <= {"root", *queues}
        if not _in_circle(queues, name):
            assert way[:-1] == [queue.metadata.name for queue in lineage(name, queues.get)]


def _in_circle(queues: dict[str, Queue], name: str) -> bool:
    """True if the way up from this queue never ends."""
    for _ in queues:
        name = queues[name].spec.parent if name in queues else ""
    return name in queues

"""Which victims are the cheapest: each rule decides only where the rules before it do not."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from victims_world import Cluster

from extender.planner.victims.order import _furthest_first, by_cost
from extender.planner.victims.units import EvictableUnit
from muster.api import names
from muster.api.kubernetes.meta import format_time
from muster.api.muster.placement import NodeSpares


def unit(
    world: Cluster, name: str, *, pods: int = 2, age_s: float = 100.0, saved_s: float | None = None, rest: bool = True,
    born_s: float = 0.0, seats: bool = False, notes: dict[str, str] | None = None, labels: dict[str, str] | None = None,
    **more: Any,
) -> EvictableUnit:  # fmt: skip
    """What goes of a gang that started and saved so long ago, and was created so long after others."""
    world.now += born_s
    key = world.runs(name, pods, gpus=1, **more)
    world.now -= born_s
    world.started(key, age_s)
    saved = {} if saved_s is None else {names.CHECKPOINT: f"at={format_time(world.now - saved_s)}"}
    world.change(world.state.groups[key], annotations={**(notes or {}), **saved}, labels=labels or {})
    gang = world.view(key)
    given = (NodeSpares("worker", "node-0", 1), gang.pods[0].cls) if seats else None
    none = np.zeros(0, dtype=np.int64)
    return EvictableUnit(gang, () if seats else tuple(gang.pods), rest, none, none, given)


@pytest.mark.parametrize(("cheap", "dear"), [
    pytest.param({"seats": True, "priority_class": "high"}, {"priority_class": "low"}, id="spares"),
    pytest.param({"age_s": 900}, {"priority_class": "high"}, id="priority"),
    pytest.param({"rest": False, "age_s": 900}, {"rest": True}, id="above the minimum"),
    pytest.param({"notes": {names.REVOCABLE_ZONE: "*"}, "age_s": 900}, {}, id="zone"),
    pytest.param({"notes": {names.PREEMPTABLE: "true"}, "age_s": 900}, {}, id="annotation"),
    pytest.param({"labels": {names.PREEMPTABLE: "true"}, "age_s": 900}, {}, id="label"),
    pytest.param({}, {"notes": {names.REVOCABLE_ZONE: "a"}, "age_s": 900}, id="another zone is none"),
    pytest.param({"pods": 3, "age_s": 90}, {"pods": 2, "age_s": 900}, id="work since the start"),
    pytest.param({"age_s": 900, "saved_s": 50}, {"age_s": 100}, id="work since the checkpoint"),
    pytest.param({"age_s": 200, "saved_s": 300}, {"age_s": 250}, id="no checkpoint of an earlier life"),
    pytest.param({"pods": 1, "age_s": 150}, {"pods": 2, "age_s": 100}, id="work of all pods"),
    pytest.param({"pods": 1, "saved_s": 0}, {"pods": 2, "saved_s": 0}, id="pods"),
    pytest.param({"born_s": 5.0}, {}, id="younger"),
])  # fmt: skip
def test_the_cheapest_goes_first(cheap: dict[str, Any], dear: dict[str, Any]) -> None:
    """In whatever order they came."""
    for names_ in (("cheap", "dear"), ("dear", "cheap")):
        world = Cluster(1, checked=False)
        units = [unit(world, name, **(cheap if name == "cheap" else dear)) for name in names_]
        for some in (units, units[::-1]):
            assert [each.gang.group.metadata.name for each in by_cost(some, world.now)] == ["cheap", "dear"]


def test_of_equals_the_last_that_came_goes_first_and_pieces_of_one_stay_in_their_order() -> None:
    """Arrival decides between gangs of one second."""
    world = Cluster(1, checked=False)
    first, second = unit(world, "first"), unit(world, "second")
    again = EvictableUnit(first.gang, first.pods, first.rest, first.columns, first.rows)
    for some in ([first, again, second], [second, first, again]):
        assert by_cost(some, world.now) == [second, first, again]


QUEUES = st.dictionaries(st.sampled_from("abc"), st.lists(st.integers(1, 5), max_size=5), min_size=1)


@given(gives=QUEUES, has=st.dictionaries(st.sampled_from("abc"), st.integers(0, 12)))
def test_the_queue_furthest_above_its_share_gives_the_next(gives: dict[str, list[int]], has: dict[str, int]) -> None:
    """As a walk says that compares all queues for each unit; its own units stay in their order."""
    left = {queue: has.get(queue, 0) for queue in gives}
    pairs = [(queue, gpus) for queue, each in gives.items() for gpus in each]
    units: list[Any] = [SimpleNamespace(gang=SimpleNamespace(queue=queue), gpus=gpus) for queue, gpus in pairs]
    expected, rest, now = [], {queue: list(each) for queue, each in gives.items() if each}, dict(left)
    while rest:
        queue = min(rest, key=lambda name: (-now[name], name))
        gpus = rest[queue].pop(0)
        expected.append((queue, gpus))
        now[queue] -= gpus
        rest = {name: each for name, each in rest.items() if each}

    def saturation(queue: str, gone: Any) -> float:
        left[queue] -= gone.gpus if gone else 0
        return float(left[queue])

    assert [(unit.gang.queue, unit.gpus) for unit in _furthest_first(units, saturation)] == expected

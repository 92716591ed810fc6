"""The planner's cycles: when there is one, what it reads and writes, and what it shows."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from extender_world import World
from guarded_extender import Process
from prometheus_client import REGISTRY

from extender.cycles import Planner
from extender.planner.framework import config
from extender.planner.framework.config import SchedulerConfig
from muster.api.muster.placement import PLACEMENTS

GPU8 = {"nvidia.com/gpu": 8}


class Planning(Process):
    """A planner over two nodes, a gang for both, and a gang that does not fit."""

    def __init__(self, configuration: SchedulerConfig | None = None) -> None:
        world = World().nodes(2)
        for name, pods in (("fits", 2), ("large", 3)):
            key = world.gang(name, {"worker": (pods, GPU8)})
            world.members(key, pods, GPU8, gated=True)
        super().__init__(world)
        self.leads = True
        self.budgets: list[Any] = []
        self.planner = Planner(
            self.committer._cluster,
            self.committer,
            configuration or SchedulerConfig(),
            active=lambda: self.leads,
            arrived=dict,
            wall_s=lambda: world.now,
            monotonic_s=time.monotonic,
            report_budgets=self.budgets.append,
        )

    def placed(self) -> list[str]:
        """The gangs of which the API server has a placement, when all writes are answered."""
        assert self.committer.writes.settled(10)
        return [each.metadata.name for each in self.api.all(PLACEMENTS)]


@pytest.fixture
def planning() -> Iterator[Planning]:
    """One, whose threads end with the test."""
    one = Planning()
    yield one
    one.planner.stop() if one.planner._thread.ident else None
    one.stop()


def metric(name: str) -> float | None:
    """The value of a metric."""
    return REGISTRY.get_sample_value(f"muster_{name}")


def comes(happened: Callable[[], Any]) -> Any:
    """What comes within a minute."""
    end_s = time.monotonic() + 60
    while not happened() and time.monotonic() < end_s:
        time.sleep(0.01)
    return happened()


def test_a_cycle(planning: Planning) -> None:
    """Decides, writes what it has decided, and shows it."""
    planning.planner.cycle()
    assert planning.placed() == ["fits"]
    session = planning.planner.session
    assert session is not None
    assert planning.budgets == [session]
    assert [gang.key for gang in session.snapshot.gangs] == ["ns/fits", "ns/large"]
    assert (metric("gangs_waiting"), metric("suspect_nodes")) == (1, 0)


def test_a_replica_that_has_lost_its_lead_writes_nothing(planning: Planning) -> None:
    """It has planned, and another one may be planning by now."""
    planning.leads = False
    planning.planner.cycle()
    assert planning.planner.session is not None
    assert (planning.placed(), planning.budgets) == ([], [])


def test_another_configuration(planning: Planning) -> None:
    """Is that of the next cycle."""
    planning.planner.reconfigure(config.parse("actions: enqueue"))
    planning.planner.cycle()
    assert planning.placed() == []
    planning.planner.reconfigure(SchedulerConfig())
    planning.planner.cycle()
    assert planning.placed() == ["fits"]


def test_cycles_while_it_leads(planning: Planning) -> None:
    """None before; one when it begins to, and one whenever it is woken; an error ends none of the later ones."""
    planning.leads = False
    planning.planner.start()
    planning.planner.wake()
    time.sleep(0.2)
    assert planning.planner.session is None
    planning.leads = True
    planning.planner.wake()
    first = comes(lambda: planning.planner.session)
    assert first is not None
    assert comes(planning.placed) == ["fits"]
    failed = metric("cycles_failed_total") or 0.0
    planning.planner._usage = lambda *_: 1 / 0
    planning.planner.wake()
    assert comes(lambda: (metric("cycles_failed_total") or 0.0) > failed)
    planning.planner._usage = lambda *_: None
    planning.planner.wake()
    assert comes(lambda: planning.planner.session is not first)
    planning.planner.stop()
    assert comes(lambda: not planning.planner._thread.is_alive())

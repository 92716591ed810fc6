"""What the controller writes about Jobs in random clusters stays as it was.

`kept_lives.txt` has each change of Jobs and their objects in runs such as those of `test_any_order`, with a hash of
their content, and events and counters. A change that is meant is written by `make decisions`; its difference shows what
becomes of Jobs.
"""

import random
from collections import Counter
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec
import pytest
import structlog
from prometheus_client import REGISTRY
from simulated_cluster import Cluster
from simulated_faults import Faults

from controller.app import Controller
from muster.api.base import Resource
from muster.api.kubernetes.core import PODS
from muster.api.volcano.batch import JOBS

KEPT = Path(__file__).with_name("kept_lives.txt")
LIVES, STEPS = 20, 240


class Ordered(Cluster):
    """A cluster whose caches and workers take turns by their names, whatever their order in the controller."""

    def _new_controller(self) -> Controller:
        controller = super()._new_controller()
        controller.reflectors = dict(sorted(controller.reflectors.items()))
        controller.workers = sorted(controller.workers, key=lambda worker: worker.name)
        return controller


def life(number: int) -> list[str]:
    """The changes of one run, in which calls fail and controllers die in some."""
    chance = random.Random(number)  # noqa: S311 - the same lives each time
    faults = Faults(chance, share=[0.0, 0.05, 0.3][number % 3], crashes=[0.0, 0.0, 0.0, 0.03][number % 4])
    changes: list[str] = []
    before = counted()
    cluster = Ordered(chance, faults, lambda *change: changes.append(said(*change)))
    cluster.users.submit()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    try:
        for _ in range(STEPS):
            cluster.step()
            changes += events(cluster)
        cluster.converge()
    finally:
        structlog.reset_defaults()
    counts = sorted((counted() - before).items())
    return [*changes, *events(cluster), *(f"{name} {value:g}" for name, value in counts)]


def events(cluster: Cluster) -> list[str]:
    """What the controller has told in Events since the last call; one that dies has told nothing any more."""
    pending = cluster.controller._recorder._pending
    found = [
        f"Event {key.kind} {key.name} {key.type} {key.reason} {crc32(key.message.encode()):08x}" for key in pending
    ]
    pending.clear()
    return found


def counted() -> Counter[str]:
    """The controller's counters of what it did, by their labels."""
    metrics = (one for one in REGISTRY.collect() if one.name.startswith("muster_controller") and one.type == "counter")
    samples = (sample for metric in metrics for sample in metric.samples if sample.name.endswith("_total"))
    return Counter({f"{each.name} {' '.join(each.labels.values())}": each.value for each in samples})


def said(res: Resource[Any], old: Any, new: Any) -> str:
    """A change, with what is most of interest of a Job and a pod."""
    one = new or old
    what = "goes" if new is None else "changes" if old else "comes"
    status = one.status if res in {JOBS, PODS} else None
    state = ""
    if res is JOBS:
        state = f" {status.state.phase} {status.state.reason} v{status.version} r{status.retry_count}"
    if res is PODS:
        state = f" {status.phase}"
    return f"{res.kind} {one.metadata.name} {what}{state} {crc32(msgspec.json.encode(one, order='sorted')):08x}"


@pytest.mark.parametrize("number", range(LIVES))
def test_changes_are_those_that_were_kept(number: int) -> None:
    """In one run."""
    kept = KEPT.read_text().split("# ")[1 + number].split("\n", 1)[1].rstrip()
    assert "\n".join(life(number)) == kept


if __name__ == "__main__":
    KEPT.write_text("".join(f"# {number}\n" + "\n".join(life(number)) + "\n\n" for number in range(LIVES)))

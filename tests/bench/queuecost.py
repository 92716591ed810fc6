"""What queues cost end to end: the throughput with all that is on by default, and with gangs and predicates only."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from musterctl.plane.plane import Plane
from musterctl.plane.state import PlaneOptions
from tests.bench.throughput import NODE_COUNT, PARTS, make_nodes, measure

ROUNDS = 2
GANGS, MEMBERS = 30, 100
WITHOUT = """
actions: enqueue, allocate
tiers:
  - plugins: [{name: gang}, {name: predicates}]
"""


def run() -> Iterator[str]:
    """Both in turns, each on a plane of its own."""
    for number in range(ROUNDS):
        for what, config in (("without queues", WITHOUT), ("with queues", "")):
            options = PlaneOptions(planning_config=config)
            with (
                tempfile.TemporaryDirectory() as folder,
                Plane(Path(folder) / "plane", PARTS, options, bound=True) as plane,
            ):
                client = plane.client()
                make_nodes(client, NODE_COUNT)
                yield f"round {number + 1}, {what}: {measure(plane, client, GANGS, MEMBERS)}"

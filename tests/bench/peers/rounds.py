"""Who is measured when: in each round each peer in turn, each on its own plane, with all shapes of so many nodes."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from muster.kube.client import Client
from muster.kube.errors import APIError
from musterctl.plane.machine import LocalError
from musterctl.plane.plane import Plane
from musterctl.plane.process import PlaneProcess
from tests.bench.peers.meter import Meter, Sample
from tests.bench.peers.peer import Peer
from tests.bench.peers.shapes import Shape
from tests.bench.throughput import WARM_UP, make_nodes

Samples = dict[str, dict[str, list[Sample]]]
"""Name of a shape → name of a peer → its sample of each round."""
Failures = dict[str, str]
"""Name of a peer, and of the shape if it is one → why there is no figure."""
_PART_S = 0.1
"""Seconds that a pod may take on average, which slow peers need; and a minute for the first one."""


class Rounds:
    """Measurements of peers in turns. A failure of one peer is noted, and the other peers continue."""

    def __init__(self, peers: Sequence[Peer], shapes: Mapping[str, Shape], folder: Path) -> None:
        self.peers = list(peers)
        self.shapes = shapes
        self.samples: Samples = {name: {} for name in shapes}
        self.failures: Failures = {}
        self._folder = folder

    def build(self) -> Iterator[str]:
        """Build the programs of all peers first; peers that cannot be built do not take part."""
        for peer in list(self.peers):
            try:
                peer.build()
            except (LocalError, OSError) as error:
                self.failures[peer.name] = f"cannot be built: {error}"
                self.peers.remove(peer)
                yield f"{peer.title}: CANNOT BE BUILT: {error}"

    def run(self, rounds: int) -> Iterator[str]:
        """Measure; yield a line about each sample."""
        for number in range(1, rounds + 1):
            for nodes in sorted({shape.nodes for shape in self.shapes.values()}, reverse=True):
                for peer in self.peers:
                    yield from self._turn(peer, nodes, number)

    def _turn(self, peer: Peer, nodes: int, number: int) -> Iterator[str]:
        """Measure the shapes of so many nodes that this peer still takes part in."""
        names = [name for name, shape in self.shapes.items() if shape.nodes == nodes and self._due(peer, name, number)]
        if not names:
            return
        began = time.monotonic()
        try:
            with self._running(peer, nodes) as (meter, client):
                yield f"round {number}, {peer.title}, {nodes:,} nodes: ready after {time.monotonic() - began:.0f} s"
                for name in names:
                    sample = _measured(peer, meter, client, self.shapes[name], f"r{number}-{name}")
                    self.samples[name].setdefault(peer.name, []).append(sample)
                    yield f"round {number}, {peer.title}, {self.shapes[name]}: {sample}"
        except (LocalError, APIError, OSError) as error:
            self.failures[f"{peer.name} on {nodes:,} nodes"] = f"round {number}: {error}"
            yield f"round {number}, {peer.title}, {nodes:,} nodes: FAILED: {error}"

    def _due(self, peer: Peer, name: str, number: int) -> bool:
        """Return whether a peer takes part: of several sets of flags that were tuned, the best one of the first round.

        All but the best are measured once, as are flags that stand beside the tuned ones.
        """
        return number == 1 or (number <= peer.rounds and self.best(peer.family, name) in {"", peer.name})

    def best(self, family: str, shape: str) -> str:
        """Return the name of the family's peer with the highest rate in the first round; "" without any."""
        firsts = {
            peer.name: self.samples[shape][peer.name][0].rate
            for peer in self.peers
            if peer.family == family and peer.rounds > 1 and self.samples[shape].get(peer.name)
        }
        return max(firsts, key=lambda name: firsts[name], default="")

    @contextmanager
    def _running(self, peer: Peer, nodes: int) -> Iterator[tuple[Meter, Client]]:
        """Start the plane of the peer's family with its nodes, and the peer; warm it up; stop everything in the end."""
        with ExitStack() as stack:
            plane = peer.plane(self._folder / f"{peer.family}-{nodes}")
            stack.callback(plane.stop)
            plane.start()
            client = stack.enter_context(closing(plane.client()))
            if plane.is_new:
                make_nodes(client, nodes)
                peer.prepare(plane, client)
            processes = dict(_parts(plane)) | dict(peer.start(plane))
            meter = Meter(client, processes)
            _measured(peer, meter, client, Shape(*WARM_UP, nodes), "warm-up")
            yield meter, client


def _parts(plane: Plane) -> Iterator[tuple[str, PlaneProcess]]:
    for name, part in plane.parts.items():
        if part.alive:
            yield name, part


def _measured(peer: Peer, meter: Meter, client: Client, shape: Shape, prefix: str) -> Sample:
    """Measure one submission, and remove it."""
    meter.calm()
    timeout_s = 60 + shape.pods * _PART_S
    sample = meter.measure(lambda: peer.submit(client, prefix, shape.gangs, shape.members), shape.pods, timeout_s)
    peer.clean(client)
    return sample

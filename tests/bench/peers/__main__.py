"""`python -m tests.bench.peers [--peers …] [--shapes …] [--rounds N] [--factor F]`; see `make bench-peers`."""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.bench.peers import coscheduling, kubernetes, kueue, muster, page, volcano
from tests.bench.peers.peer import Peer
from tests.bench.peers.rounds import Rounds
from tests.bench.peers.shapes import SHAPES

PEERS: tuple[Peer, ...] = (
    muster.Muster(),
    kubernetes.NativePods(),
    kubernetes.NativeJobs(),
    *volcano.ALL,
    coscheduling.Coscheduling(),
    kueue.Kueue(),
    kueue.KueueAndMuster(),
    kubernetes.Stock(),
)
"""All peers, in the order of the tables. Those of one family are chosen together."""


def main() -> None:
    """Run what the arguments name, print each sample and the tables, and write the page if the shapes are whole."""
    given = _arguments()
    peers = [peer for peer in PEERS if peer.family in given.peers]
    shapes = {name: SHAPES[name].scaled(given.factor) for name in given.shapes}
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="muster-peers-") as folder:
        rounds = Rounds(peers, shapes, Path(folder))
        for line in rounds.build():
            print(line, flush=True)
        print(f"built after {time.monotonic() - began:.0f} s", flush=True)
        for line in rounds.run(given.rounds):
            print(f"{time.monotonic() - began:6.0f} s  {line}", flush=True)
    run = page.Run.of(rounds, given.factor)
    print("\n".join(page.tables(run)))
    if given.factor == 1 and given.page:
        page.write(run)
    print(f"took {(time.monotonic() - began) / 60:.1f} min")


def _arguments() -> argparse.Namespace:
    families = tuple(dict.fromkeys(peer.family for peer in PEERS))
    parser = argparse.ArgumentParser(prog="python -m tests.bench.peers", description=__doc__)
    parser.add_argument("--peers", type=_names(families), default=families, help=f"of {', '.join(families)}")
    parser.add_argument("--shapes", type=_names(tuple(SHAPES)), default=tuple(SHAPES), help=f"of {', '.join(SHAPES)}")
    parser.add_argument("--rounds", type=int, default=3, help="all peers in turn, so many times")
    parser.add_argument("--factor", type=float, default=1.0, help="part of the gangs and nodes; 1 writes the page")
    parser.add_argument("--no-page", dest="page", action="store_false", help="print only")
    return parser.parse_args()


def _names(known: tuple[str, ...]) -> Callable[[str], tuple[str, ...]]:
    """Return a converter for names that are separated by commas."""

    def names(text: str) -> tuple[str, ...]:
        found = tuple(text.split(","))
        if unknown := set(found) - set(known):
            raise argparse.ArgumentTypeError(f"{', '.join(sorted(unknown))}: not one of {', '.join(known)}")
        return found

    return names


if __name__ == "__main__":
    main()

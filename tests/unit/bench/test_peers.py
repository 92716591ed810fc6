"""The page about peers: ratios within a round, the better of two sets of flags, and where Muster is worse."""

from pathlib import Path

import pytest

from tests.bench import blocks
from tests.bench.peers import page
from tests.bench.peers.meter import Sample, median
from tests.bench.peers.page import Measured, Row, Run
from tests.bench.peers.rounds import Rounds
from tests.bench.peers.shapes import SHAPES
from tests.bench.peers.volcano import ALL


def sample(rate: float, first_s: float = 1.0, writes: float = 3.0) -> Sample:
    """One of 100 pods, with this rate."""
    cpu = {"kube-apiserver": 5.0, "own": 1.0, "client": 9.0}
    return Sample(100, 0, first_s, 100 / rate, cpu, {"pods": writes}, 0.2, 0.0, {"own": 150.0})


def run() -> Run:
    """Two rounds of Muster, the limit, and Volcano with two sets of flags, of which one ended after a round."""
    names = ("muster", "volcano.3", "volcano.100", "stock")
    samples = {
        "muster": [sample(100.0), sample(50.0)],
        "volcano.3": [sample(80.0, first_s=0.5, writes=2.0), sample(20.0, first_s=0.5, writes=2.0)],
        "volcano.100": [sample(40.0)],
        "stock": [sample(200.0), sample(200.0)],
    }
    shape = Measured("2 gangs of 50 pods", 1, "Today.", samples, {"kueue": "cannot be built: no network"})
    return Run({name: Row(name.title(), f"about {name}", ("own",)) for name in names}, {"30x100": shape})


def test_ratios_are_of_the_same_round() -> None:
    """Muster was 1.25 and 2.5 times as fast; the median of the rates alone would say 1.5."""
    shape = run().shapes["30x100"]
    assert shape.ratio("muster", "volcano.3") == pytest.approx(1.875)
    assert shape.ratio("muster", "stock") == pytest.approx(0.375)
    assert shape.ratio("muster", "kueue") is None


def test_the_page_names_what_is_worse_and_what_is_missing() -> None:
    """Of two sets of flags the better one counts; a peer without figures has its reason."""
    text = "\n".join(page.tables(run()))
    assert "* Without figures: kueue, cannot be built: no network" in text
    first = "With *Volcano.3*, the first pod is bound after 0.5 s, with Muster after 1 s."
    assert (
        f"* *Volcano.3*: better than Muster in 2 of 5 figures. {first} With *Volcano.3*, the API server gets 2" in text
    )
    assert "bound per second" not in text
    assert "| Volcano.100 | 40 (one round) |" in text


def test_the_readme_quotes_the_best_of_each_family() -> None:
    """One row per family."""
    assert list(page.quoted(run()))[2:] == ["| Muster | 75 |", "| Volcano.3 | 50 |", "| Stock | 200 |"]


def test_a_median_is_of_every_figure() -> None:
    """Also of processes that one sample lacks."""
    two = sample(100.0)._replace(cpu_ms={"kube-apiserver": 7.0})
    assert median([sample(50.0), two]).cpu_ms == {"kube-apiserver": 6.0, "own": 0.5, "client": 4.5}


def test_shapes_are_scaled_by_gangs_or_by_the_only_gang() -> None:
    """With their nodes."""
    assert SHAPES["30x100"].scaled(0.1)[:] == (3, 100, 500)
    assert SHAPES["1x3000"].scaled(0.1)[:] == (1, 300, 500)
    assert str(SHAPES["10000x1"]) == "10,000 gangs of 1 pod on 1,000 nodes"


def test_a_block_is_replaced_where_it_is(tmp_path: Path) -> None:
    """What is around it stays; without it the page is refused."""
    file = tmp_path / "page.md"
    file.write_text("before\n<!-- own: -->\nold\n<!-- /own -->\nafter\n")
    blocks.put(file, "own", "make bench", "new")
    blocks.put(file, "own", "make bench", "newer")
    assert file.read_text().splitlines()[2:] == ["", "newer", "", "<!-- /own -->", "after"]
    with pytest.raises(ValueError, match="has no block 'peers'"):
        blocks.put(file, "peers", "make bench", "new")


def test_the_better_flags_go_on(tmp_path: Path) -> None:
    """After the first round only the better number of workers is measured, for each shape; without figures both are."""
    rounds = Rounds(ALL, {name: SHAPES[name] for name in ("30x100", "500x1", "1x3000")}, tmp_path)
    three, hundred, shipped = ALL
    for shape, rates in {"30x100": (50.0, 60.0, 70.0), "500x1": (9.0, 8.0, 5.0)}.items():
        for peer, rate in zip(ALL, rates, strict=True):
            rounds.samples[shape][peer.name] = [sample(rate)]
    assert [peer for peer in ALL if rounds._due(peer, "30x100", 2)] == [hundred]
    assert [peer for peer in ALL if rounds._due(peer, "500x1", 2)] == [three]
    assert [peer for peer in ALL if rounds._due(peer, "1x3000", 2)] == [three, hundred]
    assert rounds._due(shipped, "30x100", 1)

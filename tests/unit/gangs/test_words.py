"""Words of lists: never more than ten, whatever a reason is; and names of nodes that stay short."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.planner.reasons.shortages import NearestMiss, Shortage
from gangs.words import MOST_WORDS, brief, duration, nodes_text, plain, ranges, short

TEXTS = st.text() | st.lists(st.sampled_from(["of", "nodes:", "8;", "too,", "little", "x" * 50])).map(" ".join)


@given(TEXTS)
def test_a_reason_has_at_most_ten_words(text: str) -> None:
    """On one line, which a terminal shows as it is."""
    short = brief(text)
    assert len(short.split()) <= MOST_WORDS
    assert len(short) <= 80
    assert short.isprintable()


@given(st.lists(st.sampled_from(["one", "two", "three"]), max_size=MOST_WORDS).map(" ".join))
def test_a_short_reason_stays(text: str) -> None:
    """To the last letter."""
    assert brief(text) == text


def test_a_long_reason_keeps_whole_clauses() -> None:
    """Those that ten words hold; else the first words."""
    assert brief("queue 'x' is Closed; there is root, default, and many others that are open") == "queue 'x' is Closed"
    assert brief("3 of the 5 pods that start together exist") == "3 of the 5 pods that start together exist"
    miss = NearestMiss(6, "nvidia.com/gpu", 2000, whole_nodes=False, levels=())
    message = Shortage("worker", "together", 6, 0, {"nvidia.com/gpu": 2000}, 8, 0, (), miss).message
    assert brief("two words: " + "x " * 10) == f"two words:{' x' * 8}…"
    assert brief("these three words: " + "x " * 10) == "these three words"
    assert (brief("x" * 80), brief("x" * 81)) == ("x" * 80, "x" * 79 + "…")
    assert brief(f"of three words: {'x' * 63}; y") == f"of three words: {'x' * 63}"
    assert brief(f"of three words: {'x' * 64}; y") == "of three words"
    assert brief(message) == "worker: room is missing for 6 pods of 2 nvidia.com/gpu…"


def test_what_a_terminal_would_act_on_is_not_printed() -> None:
    """The text may be a tenant's."""
    assert plain("a\x1b[31mb\nc\u202e") == "a [31mb c"


def test_nodes_in_a_row() -> None:
    """As Slurm writes them; other names as they are."""
    assert ranges(["node-0001", "node-0000", "node-0003", "login"]) == ["node-[0000-0001,0003]", "login"]
    assert ranges(["n9", "n10", "n08"]) == ["n9", "n[08,10]"]
    assert nodes_text(["node-0002"]) == "node-0002"
    assert nodes_text([]) == "-"
    assert nodes_text([f"host-{n:03}" for n in range(0, 100, 2)]) == "host-000 and 49 more"
    assert nodes_text(["x" * 60]) == "x" * 39 + "…"
    assert nodes_text(["x" * 60, "y"]) == "x" * 39 + "… and 1 more"
    assert (nodes_text(["x" * 40]), nodes_text(["a", "bc"], 4)) == ("x" * 40, "a,bc")
    assert nodes_text(["abcd", "e"], 4) == "abcd and 1 more"


@given(st.sets(st.from_regex(r"[a-c]{0,2}[0-9]{0,3}", fullmatch=True)))
def test_no_node_is_lost(names: set[str]) -> None:
    """Each name is in its range, and no other name is."""
    assert sorted(name for each in ranges(names) for name in _expanded(each)) == sorted(names)


def _expanded(text: str) -> list[str]:
    stem, bracket, inside = text.partition("[")
    if not bracket:
        return [text]
    names = []
    for part in inside.rstrip("]").split(","):
        low, _, high = part.partition("-")
        names += [f"{stem}{number:0{len(low)}}" for number in range(int(low), int(high or low) + 1)]
    return names


@pytest.mark.parametrize(("seconds", "words"), [
    (0.4, "0s"), (59.6, "1m00s"), (200, "3m20s"), (3599, "59m59s"), (3600, "1h00m"), (7_500, "2h05m"),
    (86_400, "1d00h"), (273_600, "3d04h"),
])  # fmt: skip
def test_durations_have_two_units(seconds: float, words: str) -> None:
    """A time is shown in its two largest units."""
    assert duration(seconds) == words


@pytest.mark.parametrize(("seconds", "words"), [
    (-5, "0s"), (0.9, "0s"), (119, "119s"), (120, "2m"), (10_799, "179m"), (10_800, "3h"), (172_799, "47h"),
    (172_800, "2d"),
])  # fmt: skip
def test_short_times_have_one_unit(seconds: float, words: str) -> None:
    """The largest that says it to a half or better."""
    assert short(seconds) == words

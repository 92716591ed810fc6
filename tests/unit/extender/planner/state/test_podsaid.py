"""What pods say to Muster: those that carry none of its keys are known at once to say nothing."""

from collections.abc import Iterator

import pytest

from extender.planner.state.podsaid import KEYS, NOTHING, read, said_by
from muster.api import names
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.muster.gang import Seat

TEXTS = ("1", "false", "true", "some-name")


def words() -> Iterator[str]:
    """All names that Muster knows."""
    for value in vars(names).values():
        if isinstance(value, str):
            yield value
        elif isinstance(value, tuple | frozenset):
            yield from value


@pytest.mark.parametrize("word", sorted(set(words()) | KEYS))
def test_no_key_is_overlooked(word: str) -> None:
    """As an annotation or a label, whatever it says; a key that nobody reads is none."""
    said = []
    for text in TEXTS:
        for meta in (ObjectMeta(annotations={word: text}), ObjectMeta(labels={word: text})):
            said.append(read(meta))
            assert said_by(meta) == said[-1]
    if word not in KEYS:
        assert set(map(str, said)) == {str(NOTHING)}


def test_who_says_nothing() -> None:
    """Others' annotations and labels are none of ours."""
    meta = ObjectMeta(namespace="ns", annotations={"prometheus.io/scrape": "true"}, labels={"app": "web"})
    assert said_by(meta) is NOTHING
    assert read(meta) == NOTHING


def test_a_seat_takes_two_words() -> None:
    """Of a task and an index; each alone says nothing."""
    meta = ObjectMeta(annotations={names.TASK_SPEC: "worker", names.TASK_INDEX: "3"})
    assert said_by(meta).seat == Seat("worker", 3)


def test_a_gang_is_of_the_namespace() -> None:
    """Its key says so."""
    assert said_by(ObjectMeta(namespace="ns", labels={names.GANG: "train"})).gang == "ns/train"

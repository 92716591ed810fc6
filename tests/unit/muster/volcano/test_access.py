"""A namespace may use a queue if the queue and each one above it select it, and it is locked to no other."""

from hypothesis import given
from hypothesis import strategies as st

from muster.api.kubernetes.meta import ObjectMeta
from muster.api.names import NAMESPACE_SELECTOR, QUEUE, QUEUE_LOCKED
from muster.api.volcano.scheduling import Queue, QueueSpec
from muster.volcano.access import barrier

SELECTORS = {
    "team=a": {"a"}, "team!=a": {"b", ""}, "team": {"a", "b"}, "!team": {""}, "": {"a", "b", ""}, "(": set[str]()
}  # fmt: skip
"""Selector → values of the label `team` that it selects; "" stands for none."""


def a_queue(name: str, parent: str, selector: str | None) -> Queue:
    """A queue below another, with a selector or none."""
    said = {} if selector is None else {NAMESPACE_SELECTOR: selector}
    return Queue(metadata=ObjectMeta(name=name, annotations=said), spec=QueueSpec(parent=parent))


@given(st.lists(st.sampled_from([None, *SELECTORS]), min_size=1, max_size=5), st.sampled_from(["a", "b", ""]))
def test_every_queue_on_the_way_to_the_root_must_select(chain: list[str | None], team: str) -> None:
    """The first one that does not is named."""
    names = [*(f"q{depth}" for depth in range(len(chain) - 1)), "root"]
    queues = {
        name: a_queue(name, above, selector)
        for name, above, selector in zip(names, [*names[1:], ""], chain, strict=True)
    }
    labels = {"team": team} if team else {}
    closed = [name for name, text in zip(names, chain, strict=True) if text is not None and team not in SELECTORS[text]]
    found = barrier(names[0], "ns", labels, queues.get)
    assert (found.queue if found else None) == next(iter(closed), None)


@given(st.sampled_from(["a", "b", "root"]))
def test_a_locked_namespace_may_use_its_queue_alone(name: str) -> None:
    """Whatever the queues select; a lock without a queue holds nothing."""
    queues = {each: a_queue(each, "root", None) for each in ("a", "b", "root")}
    assert (barrier(name, "ns", {QUEUE: "a", QUEUE_LOCKED: "true"}, queues.get) is None) == (name == "a")
    assert barrier(name, "ns", {QUEUE_LOCKED: "true"}, queues.get) is None
    assert barrier(name, "ns", {QUEUE: "a", QUEUE_LOCKED: "false"}, queues.get) is None


def test_parents_in_a_circle_end_somewhere() -> None:
    """Admission refuses them; what got in all the same must not hang the planner."""
    assert barrier("a", "ns", {}, {"a": a_queue("a", "b", None), "b": a_queue("b", "a", None)}.get) is None

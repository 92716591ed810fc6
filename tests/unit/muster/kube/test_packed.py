"""A store of packed objects answers as one of plain ones does, and keeps no more than their text."""

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from short_args import TEMPLATE, growth, metadata

from muster.api.kubernetes.meta import ObjectMeta
from muster.api.volcano.batch import Job, JobSpec, TaskSpec
from muster.kube.store import Store

LEAVES = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text()
PLAIN = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=10)
TEMPLATES = st.dictionaries(st.text(), PLAIN, max_size=3)
JOBS = st.builds(
    lambda name, queue, templates: Job(
        metadata=ObjectMeta(name=name, namespace="ns", uid=name),
        spec=JobSpec(queue=queue, tasks=[TaskSpec(name=f"t{n}", template=each) for n, each in enumerate(templates)]),
    ),
    st.sampled_from("abc"),
    st.sampled_from("qr"),
    st.lists(TEMPLATES.filter(lambda each: "Infinity" not in repr(each) and "inf" not in repr(each)), max_size=2),
)


def by_queue(job: Job) -> Iterable[str]:
    """An index."""
    return [job.spec.queue]


@given(st.lists(JOBS | st.sampled_from("abc")))
def test_it_answers_as_a_plain_one(steps: list[Job | str]) -> None:
    """Whatever is put and removed, in whatever order."""
    plain, packed = Store({"queue": by_queue}), Store({"queue": by_queue}, packed=Job)
    for step in steps:
        if isinstance(step, str):
            assert plain.discard(f"ns/{step}") == packed.discard(f"ns/{step}")
        else:
            plain.put(step)
            packed.put(step)
        assert (plain.list(), plain.keys(), len(plain)) == (packed.list(), packed.keys(), len(packed))
        for queue in "qr":
            assert plain.by_index("queue", queue) == packed.by_index("queue", queue)
        for name in "abc":
            assert plain.get(f"ns/{name}") == packed.get(f"ns/{name}")


def test_an_object_that_cannot_be_packed_changes_nothing() -> None:
    """As with an index that raises."""
    store = Store(packed=Job)
    odd: Any = Job(metadata=ObjectMeta(name="a"), spec=JobSpec(queue=object()))  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        store.put(odd)
    assert (len(store), store.list()) == (0, [])


def test_it_keeps_no_more_than_a_text() -> None:
    """A list of short strings is twelve times as large in Python."""
    one: dict[str, Any] = {"metadata": metadata(0), "spec": {"tasks": [{"name": "t", "template": TEMPLATE}]}}
    text, store = msgspec.json.encode(one), Store(packed=Job)
    with growth() as grown:
        store.put(msgspec.json.decode(text, type=Job))
    assert grown.size_bytes < 1.1 * len(text)

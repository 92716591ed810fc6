"""A store finds objects by key and index, packed or not; what its mirror tells handlers adds up to its content."""

from collections.abc import Iterable
from itertools import chain
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import REGISTRY
from short_args import TEMPLATE, growth, metadata

from muster.api.kubernetes.meta import Object, ObjectMeta
from muster.api.volcano.batch import Job, JobSpec, TaskSpec
from muster.kube.store import Mirror, ObjectStore

LEAVES = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text()
PLAIN = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=10)
TEMPLATES = st.dictionaries(st.text(), PLAIN, max_size=3)
JOBS = st.builds(
    lambda name, namespace, queues, templates: Job(
        metadata=ObjectMeta(name=name, namespace=namespace, uid=name, labels=dict.fromkeys(queues, "")),
        spec=JobSpec(tasks=[TaskSpec(name=f"t{n}", template=each) for n, each in enumerate(templates)]),
    ),
    st.sampled_from("abc"),
    st.sampled_from(["ns", ""]),
    st.sets(st.sampled_from("qr")),
    st.lists(TEMPLATES.filter(lambda each: "Infinity" not in repr(each) and "inf" not in repr(each)), max_size=2),
)
KEYS = st.sampled_from(["ns/a", "ns/b", "ns/c", "a", "b", "c"])


def by_queue(job: Job) -> Iterable[str]:
    """Files a Job under each of its labels."""
    return list(job.metadata.labels)


@given(st.lists(JOBS | KEYS), st.booleans())
def test_it_answers_as_a_dictionary_does(steps: list[Job | str], packed: bool) -> None:  # noqa: FBT001 - as hypothesis has it
    """Whatever is put and removed; each index says what looking at every object would say, and keeps nothing else."""
    store = ObjectStore({"queue": by_queue}, packed=Job if packed else None)
    known: dict[str, Job] = {}
    for step in steps:
        if isinstance(step, str):
            assert store.discard(step) == known.pop(step, None)
        else:
            store.add_object(step)
            known[step.metadata.key] = step
        assert (store.list(), store.keys(), len(store)) == ([*known.values()], [*known], len(known))
        assert store.get("ns/a") == known.get("ns/a")
        for queue in "qr":
            filed = {key: job for key, job in known.items() if queue in job.metadata.labels}
            assert sorted(store.keys_by_index("queue", queue)) == sorted(filed)
            assert {job.metadata.key: job for job in store.by_index("queue", queue)} == filed
        assert set(store._indexes["queue"]) == {queue for job in known.values() for queue in job.metadata.labels}


def test_readers_of_plain_objects_share_them() -> None:
    """To copy each pod for each reader would cost too much."""
    store, one = ObjectStore[Job](), Job(metadata=ObjectMeta(name="a"))
    store.add_object(one)
    assert store.get("a") is one


def test_an_unknown_index_is_a_mistake() -> None:
    """It is not the same as finding nothing."""
    with pytest.raises(KeyError, match="owner"):
        ObjectStore[Job]().by_index("owner", "x")


def test_an_object_that_cannot_be_packed_changes_nothing() -> None:
    """As with an index that raises."""
    store = ObjectStore(packed=Job)
    odd: Any = Job(metadata=ObjectMeta(name="a"), spec=JobSpec(queue=object()))  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        store.add_object(odd)
    assert (len(store), store.list()) == (0, [])


def test_it_keeps_no_more_than_a_text() -> None:
    """A list of short strings is twelve times as large in Python."""
    one: dict[str, Any] = {"metadata": metadata(0), "spec": {"tasks": [{"name": "t", "template": TEMPLATE}]}}
    text, store = msgspec.json.encode(one), ObjectStore(packed=Job)
    with growth() as grown:
        store.add_object(msgspec.json.decode(text, type=Job))
    assert grown.size_bytes < 1.1 * len(text)


Seen = tuple[str, str, str]
seen = st.tuples(st.sampled_from("abc"), st.sampled_from("uv"), st.sampled_from("12"))
steps = st.lists(st.lists(seen, max_size=3, unique_by=lambda each: each[0]) | seen | st.sampled_from("abc"))


def made(of: Seen) -> Object:
    """An object with this name, UID and version."""
    return Object(metadata=ObjectMeta(name=of[0], uid=of[1], resource_version=of[2]))


def versions(objects: list[Object]) -> set[Seen]:
    """What is compared."""
    return {(one.metadata.name, one.metadata.uid, one.metadata.resource_version) for one in objects}


@given(steps)
def test_changes_follow_from_each_other(told: list[list[Seen] | Seen | str]) -> None:
    """An old object is what was told as new before; one that was replaced goes first; what is unchanged is not told."""
    mirror = Mirror[Object]("tests", ObjectStore())
    known: dict[str, Object] = {}

    def handler(old: Object | None, new: Object | None) -> None:
        name = (new or old or Object()).metadata.name
        assert known.get(name) is old
        if new is None:
            del known[name]
            return
        assert old is None or old.metadata.uid == new.metadata.uid
        assert old is None or old.metadata.resource_version != new.metadata.resource_version
        known[name] = new

    mirror.handlers.append(handler)
    failures = REGISTRY.get_sample_value("muster_kube_handler_failures_total", {"resource": "tests"}) or 0
    for step in told:
        if isinstance(step, list):
            found: set[str] = set()
            for _ in chain(mirror.put_all(map(made, step), found), mirror.keep_only(found)):
                assert versions(mirror.store.list()) == versions([*known.values()])
            assert versions(mirror.store.list()) == set(step)
        elif isinstance(step, str):
            mirror.remove(step)
            assert mirror.store.get(step) is None
        else:
            mirror.add_object(made(step))
            assert step in versions(mirror.store.list())
        assert versions(mirror.store.list()) == versions([*known.values()])
    assert (REGISTRY.get_sample_value("muster_kube_handler_failures_total", {"resource": "tests"}) or 0) == failures


def test_a_handler_that_fails_is_counted_and_the_others_are_told() -> None:
    """Its defect is not theirs."""
    mirror = Mirror[Object]("broken", ObjectStore())
    names: list[str] = []

    def fails(_old: Object | None, _new: Object | None) -> None:
        raise RuntimeError("a defect")

    mirror.handlers += [fails, lambda _old, new: names.append(new.metadata.name if new else "")]
    mirror.add_object(made(("a", "u", "1")))
    assert names == ["a"]
    assert REGISTRY.get_sample_value("muster_kube_handler_failures_total", {"resource": "broken"}) == 1


def test_one_that_cannot_be_indexed_is_left_out() -> None:
    """It is counted; nothing of it is in the store, nobody is told, and the next one is."""

    def first_label(obj: Object) -> list[str]:
        return [obj.metadata.labels["a"]]

    mirror = Mirror[Object]("unindexed", ObjectStore({"label": first_label}))
    names: list[str] = []
    mirror.handlers.append(lambda _old, new: names.append(new.metadata.name if new else ""))
    good = made(("b", "u", "1"))
    good.metadata.labels = {"a": "x"}
    mirror.add_object(made(("a", "u", "1")))
    mirror.add_object(good)
    assert (names, mirror.store.by_index("label", "x"), len(mirror.store)) == (["b"], [good], 1)
    assert REGISTRY.get_sample_value("muster_kube_undecodable_total", {"resource": "unindexed"}) == 1

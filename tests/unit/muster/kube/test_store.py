"""A store finds objects by key and by index, and its indexes never lie."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.kubernetes.meta import Object, ObjectMeta
from muster.kube.store import Store


def obj(name: str, **labels: str) -> Object:
    """An object in namespace ns."""
    return Object(metadata=ObjectMeta(name=name, namespace="ns", labels=labels))


def by_label(found: Object) -> list[str]:
    """Files an object under each of its labels."""
    return [f"{key}={value}" for key, value in found.metadata.labels.items()]


@pytest.fixture
def store() -> Store[Object]:
    """A store with an index of labels."""
    return Store({"label": by_label})


def test_finds_by_key(store: Store[Object]) -> None:
    """Keys are namespace/name, or the name of what has no namespace."""
    node = Object(metadata=ObjectMeta(name="node"))
    store.put(obj("a"))
    store.put(node)
    assert store.get("ns/a") == obj("a")
    assert store.get("node") is node
    assert store.get("ns/b") is None
    assert len(store) == 2
    assert store.keys() == ["ns/a", "node"]
    assert store.list() == [obj("a"), node]


def test_tells_what_was_there_before(store: Store[Object]) -> None:
    """The writer learns the old object from the store."""
    store.put(obj("a", x="1"))
    store.put(obj("a", x="2"))
    assert store.get("ns/a") == obj("a", x="2")
    assert store.discard("ns/a") == obj("a", x="2")
    assert store.discard("ns/a") is None


def test_indexes_follow_changes(store: Store[Object]) -> None:
    """An object moves with its values, and is under all of them."""
    store.put(obj("a", x="1", y="1"))
    store.put(obj("b", x="1"))
    assert [found.metadata.name for found in store.by_index("label", "x=1")] == ["a", "b"]
    store.put(obj("a", x="2", y="1"))
    assert [found.metadata.name for found in store.by_index("label", "x=1")] == ["b"]
    assert [found.metadata.name for found in store.by_index("label", "x=2")] == ["a"]
    store.discard("ns/a")
    assert store.by_index("label", "y=1") == []


def test_an_unknown_index_is_a_mistake(store: Store[Object]) -> None:
    """It is not the same as finding nothing."""
    with pytest.raises(KeyError, match="owner"):
        store.by_index("owner", "x")


names = st.sampled_from("abcd")
labels = st.dictionaries(st.sampled_from("xy"), st.sampled_from("12"))


@given(st.lists(st.one_of(st.tuples(names, labels), names)))
def test_indexes_equal_a_search_through_everything(changes: list[str | tuple[str, dict[str, str]]]) -> None:
    """After any changes every index says what looking at every object would say, and keeps nothing else."""
    store: Store[Object] = Store({"label": by_label})
    for change in changes:
        if isinstance(change, str):
            store.discard(f"ns/{change}")
        else:
            store.put(obj(change[0], **change[1]))
    expected: dict[str, dict[str, Object]] = {}
    for found in store.list():
        for value in by_label(found):
            expected.setdefault(value, {})[found.metadata.key] = found
    assert expected == store._indexes["label"]

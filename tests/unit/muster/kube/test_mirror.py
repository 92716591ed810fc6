"""What handlers are told adds up to what is in the store, whatever is seen in whatever order."""

from itertools import chain

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import REGISTRY

from muster.api.kubernetes.meta import Object, ObjectMeta
from muster.kube.store import Mirror, Store

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
    mirror = Mirror[Object]("tests", Store())
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
            mirror.put(made(step))
            assert step in versions(mirror.store.list())
        assert versions(mirror.store.list()) == versions([*known.values()])
    assert (REGISTRY.get_sample_value("muster_kube_handler_failures_total", {"resource": "tests"}) or 0) == failures


def test_a_handler_that_fails_is_counted_and_the_others_are_told() -> None:
    """Its defect is not theirs."""
    mirror = Mirror[Object]("broken", Store())
    names: list[str] = []

    def fails(_old: Object | None, _new: Object | None) -> None:
        raise RuntimeError("a defect")

    mirror.handlers += [fails, lambda _old, new: names.append(new.metadata.name if new else "")]
    mirror.put(made(("a", "u", "1")))
    assert names == ["a"]
    assert REGISTRY.get_sample_value("muster_kube_handler_failures_total", {"resource": "broken"}) == 1


def test_one_that_cannot_be_indexed_is_left_out() -> None:
    """It is counted; nothing of it is in the store, nobody is told, and the next one is."""

    def first_label(obj: Object) -> list[str]:
        return [obj.metadata.labels["a"]]

    mirror = Mirror[Object]("unindexed", Store({"label": first_label}))
    names: list[str] = []
    mirror.handlers.append(lambda _old, new: names.append(new.metadata.name if new else ""))
    good = made(("b", "u", "1"))
    good.metadata.labels = {"a": "x"}
    mirror.put(made(("a", "u", "1")))
    mirror.put(good)
    assert (names, mirror.store.by_index("label", "x"), len(mirror.store)) == (["b"], [good], 1)
    assert REGISTRY.get_sample_value("muster_kube_undecodable_total", {"resource": "unindexed"}) == 1

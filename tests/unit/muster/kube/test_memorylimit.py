"""The objects of one namespace take no more memory in a cache than its budget; the newest are left out."""

import asyncio
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import REGISTRY
from scripted_server import ListWatchApi, answer, client_of, event
from short_args import growth

from muster.api.kubernetes.core import CONFIG_MAPS
from muster.api.kubernetes.meta import Object, ObjectMeta
from muster.api.volcano.scheduling import POD_GROUPS, PodGroup
from muster.kube import memorylimit
from muster.kube.memorylimit import MemoryLimit, weight_of
from muster.kube.reflector import Reflector
from muster.kube.store import Mirror, ObjectStore

pytestmark = pytest.mark.anyio

MOST = 10


def thing(name: str, weight: int, version: int = 1, created: str = "") -> Object:
    """An object of a weight, created in the order of names."""
    labels = {"weight": str(weight)}
    meta = ObjectMeta(name=name, namespace="ns", uid=name, resource_version=str(version), labels=labels)
    return Object(metadata=msgspec.structs.replace(meta, creation_timestamp=created or f"2026-01-01T00:00:0{name}Z"))


def weigh(obj: Object) -> int:
    """As `thing` says."""
    return int(obj.metadata.labels["weight"])


def mirror() -> Mirror[Object]:
    """A cache with a small budget."""
    return Mirror("tests", ObjectStore(), None, MemoryLimit(CONFIG_MAPS, weigh, of_object=MOST, of_namespace=MOST))


def kept(of: Mirror[Object]) -> list[str]:
    """The names of what it has."""
    return sorted(each.metadata.name for each in of.store.list())


STEPS = st.lists(st.tuples(st.sampled_from("123456"), st.integers(0, MOST + 2)) | st.sampled_from("123456"))


@given(STEPS)
def test_it_is_never_over_its_budget(steps: list[tuple[str, int] | str]) -> None:
    """Whatever comes and goes: handlers are told what is there, and each that is left out waits, unless too heavy."""
    cache, told, there = mirror(), dict[str, Object](), dict[str, int]()
    budget = cache.budget
    assert budget is not None

    def handler(old: Object | None, new: Object | None) -> None:
        one = new or old or Object()
        assert told.get(one.metadata.name) == old
        if new is None:
            del told[one.metadata.name]
        else:
            told[one.metadata.name] = new

    cache.handlers.append(handler)
    for version, step in enumerate(steps):
        if isinstance(step, str):
            cache.remove(f"ns/{step}")
            there.pop(step, None)
        else:
            cache.add_object(thing(*step, version=version))
            there[step[0]] = step[1]
        assert sorted(told) == kept(cache)
        assert sum(weigh(each) for each in cache.store.list()) <= MOST
        for name, weight in there.items():
            assert name in told or weight > MOST or budget.left_out(f"ns/{name}")
        assert not any(budget.left_out(f"ns/{name}") for name in "123456" if name not in there)


@given(st.permutations([("1", 4), ("2", 4), ("3", 2), ("4", 4), ("5", 1)]))
def test_the_oldest_stay_in_whatever_order_they_are_seen(order: list[tuple[str, int]]) -> None:
    """So that a start does not choose others."""
    cache = mirror()
    for each in order:
        cache.add_object(thing(*each))
    assert kept(cache)[:3] == ["1", "2", "3"]


def test_one_that_is_left_out_is_told_counted_and_looked_at_again() -> None:
    """Once there is room."""
    cache, refused = mirror(), list[tuple[str, str]]()
    cache.refused.append(lambda obj, why: refused.append((obj.metadata.name, why)))
    budget = cache.budget
    assert budget is not None
    before = REGISTRY.get_sample_value("muster_kube_left_out", {"resource": "configmaps"}) or 0.0
    for name in "123":
        cache.add_object(thing(name, 5))
    assert (kept(cache), budget.again()) == (["1", "2"], [])
    assert [(name, "use more than 10 bytes" in why) for name, why in refused] == [("3", True)]
    assert REGISTRY.get_sample_value("muster_kube_left_out", {"resource": "configmaps"}) == before + 1
    cache.remove("ns/1")
    assert budget.again() == ["ns/3"]
    cache.add_object(thing("3", 5))
    assert (kept(cache), budget.again()) == (["2", "3"], [])
    assert REGISTRY.get_sample_value("muster_kube_left_out", {"resource": "configmaps"}) == before


def test_one_that_is_too_heavy_alone_stays_as_it_was() -> None:
    """It is not looked at again before it changes."""
    cache = mirror()
    cache.add_object(thing("1", 5))
    cache.add_object(thing("1", MOST + 1, version=2))
    [known] = cache.store.list()
    assert known.metadata.resource_version == "1"
    assert cache.budget is not None
    assert cache.budget.again() == []


def test_nothing_goes_for_one_that_is_heavier_than_all_of_its_namespace_may_be() -> None:
    """It is left out itself, though it is older."""
    cache = Mirror("tests", ObjectStore(), None, MemoryLimit(CONFIG_MAPS, weigh, of_object=20, of_namespace=MOST))
    cache.add_object(thing("2", 5))
    cache.add_object(thing("1", 15))
    assert kept(cache) == ["2"]
    assert cache.budget is not None
    assert cache.budget.left_out("ns/1")


def test_objects_of_the_cluster_have_no_budget() -> None:
    """Tenants cannot create them."""
    cache = mirror()
    cache.add_object(Object(metadata=ObjectMeta(name="a", uid="a", labels={"weight": "100"})))
    assert kept(cache) == ["a"]


MANY: dict[str, dict[str, Any]] = {
    "labels": {"metadata": {"labels": {f"{number:x}": "" for number in range(10_000)}}},
    "tasks": {"spec": {"minTaskMember": {f"{number:x}": number for number in range(10_000)}}},
    "policies": {"spec": {"subGroupPolicy": [{} for _ in range(10_000)]}},
    "finalizers": {"metadata": {"finalizers": [f"{number:x}" for number in range(10_000)]}},
    "owners": {"metadata": {"ownerReferences": [{"apiVersion": "", "kind": "", "name": "",
        "uid": f"{n}"} for n in range(5000)]}},
}  # fmt: skip


@pytest.mark.parametrize("what", MANY)
def test_the_weight_is_hardly_less_than_the_memory(what: str) -> None:
    """Whatever it has thousands of."""
    text = msgspec.json.encode(MANY[what])
    with growth() as grown:
        one = msgspec.json.decode(text, type=PodGroup)
    assert grown.size_bytes < 1.1 * weight_of(one)


def test_a_usual_object_is_light() -> None:
    """So that a namespace may have thousands."""
    one = PodGroup(metadata=ObjectMeta(name="a" * 20, namespace="ns", uid="u" * 36, labels={"a": "b"}))
    assert weight_of(one) < 2000


class Groups(ListWatchApi):
    """Has these objects; the second is found by its name, too."""

    def __init__(self, *objects: dict[str, Any]) -> None:
        super().__init__()
        self.objects = objects

    async def listed(self, query: dict[str, str], head: bytes) -> bytes:
        """All of them, or the second."""
        named = b"/namespaces/ns/" in head and query.get("fieldSelector") == "a=b,metadata.name=other"
        items = self.objects[1:] if named and query.get("labelSelector") == "l" else self.objects
        return answer(msgspec.json.encode({"metadata": {"resourceVersion": "9"}, "items": items}))


async def test_a_cache_reads_what_was_left_out_when_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its name, as it is then."""
    monkeypatch.setattr(memorylimit, "AGAIN_S", 0.001)
    heavy = {"annotations": {"a": "x" * 1000}, "namespace": "ns"}
    one, other = (
        {"metadata": heavy | {"name": name, "uid": name, "resourceVersion": "1", "creationTimestamp": created}}
        for name, created in (("one", "2026-01-01T00:00:00Z"), ("other", "2026-01-02T00:00:00Z"))
    )
    api = Groups(one, other)
    async with client_of(api) as client:
        budget = MemoryLimit(POD_GROUPS, of_namespace=5000)
        selectors = {"label_selector": "l", "field_selector": "a=b"}
        cache = Reflector(client, POD_GROUPS, budget=budget, random=lambda: 0.0, **selectors)
        seen: asyncio.Queue[str] = asyncio.Queue()
        cache.add_handler(lambda _, new: seen.put_nowait(new.metadata.name if new else "gone"))
        cache.start()
        assert await seen.get() == "one"
        assert len(cache.store) == 1
        api.tell(event("DELETED", msgspec.json.encode(one)))
        assert [await seen.get(), await seen.get()] == ["gone", "other"]
        await asyncio.to_thread(cache.stop)

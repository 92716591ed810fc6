"""What there is on every node, whatever comes and goes in which order."""

from typing import Any

import msgspec
import pytest
from devices_world import DRIVER, Devices, asks, device, exactly
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.planner.dynamic import inventory
from extender.planner.dynamic.claims import DeviceAlternative, DeviceKind, kind_of_class
from extender.planner.dynamic.inventory import Inventory
from muster.api.kubernetes.devices import DeviceClass, DeviceTaintRule, ResourceClaimTemplate, ResourceSlice
from muster.api.kubernetes.meta import ObjectMeta

CLASSES = ("gpu", "large", "none")
EXPRESSIONS = {
    "gpu": f'device.driver == "{DRIVER}"',
    "large": f'device.capacity["{DRIVER}"].memory.isGreaterThan(quantity("60Gi"))',
    "none": "false",
}


def class_named(name: str) -> DeviceClass:
    """One of three classes."""
    made = msgspec.convert({"spec": {"selectors": [{"cel": {"expression": EXPRESSIONS[name]}}]}}, DeviceClass)
    made.metadata = ObjectMeta(name=name)
    return made


RULES: dict[str, dict[str, Any]] = {
    "all": {"deviceSelector": {}}, "none": {}, "n0": {"deviceSelector": {"driver": DRIVER, "pool": "n0"}},
    "d0": {"deviceSelector": {"device": "d0"}}, "n1/d1": {"deviceSelector": {"pool": "n1", "device": "d1"}},
    "other driver": {"deviceSelector": {"driver": "other.example.com"}},
}  # fmt: skip


def rule_named(name: str) -> DeviceTaintRule:
    """One of the rules, with the taint that nobody here tolerates."""
    return msgspec.convert({"spec": {**RULES[name], "taint": {"key": "sick", "effect": "NoExecute"}}}, DeviceTaintRule)


def put_named(into: Inventory, what: str, name: str, *, there: bool) -> None:
    """Put a class or rule of this name, or want a kind of a class's devices; or take it away."""
    if what == "class":
        into.put_class(name, class_named(name) if there else None)
    elif what == "rule":
        into.put_rule(name, rule_named(name) if there else None)
    else:
        (into.want if there else into.uncount)(DeviceKind((DeviceAlternative(name, ("true",)),)))


def slice_of(node: str, *memories: str, **more: Any) -> ResourceSlice:
    """A node's devices by their memory."""
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    devices = [device(f"d{number}", memory=memory) for number, memory in enumerate(memories)]
    spec = {"driver": DRIVER, "pool": pool, "nodeName": node, "devices": devices, **more}
    return msgspec.convert({"spec": spec}, ResourceSlice)


MEMORIES = st.none() | st.lists(st.sampled_from(["40Gi", "80Gi"]), max_size=3)
STEPS = st.lists(st.one_of(
    st.tuples(st.just("class"), st.sampled_from(CLASSES), st.booleans()),
    st.tuples(st.just("slice"), st.sampled_from(["n0", "n1"]), MEMORIES),
    st.tuples(st.just("rule"), st.sampled_from(sorted(RULES)), st.booleans()),
    st.tuples(st.just("kind"), st.sampled_from(CLASSES), st.booleans()),
), max_size=20)  # fmt: skip


@given(STEPS)
@settings(max_examples=settings().max_examples * 2)
def test_what_is_kept_by_events_is_what_the_objects_say(steps: list[tuple[str, str, Any]]) -> None:
    """Offers and rows of an inventory that saw every step are those of one that saw the last state only."""
    kept = Inventory()
    slices: dict[str, ResourceSlice] = {}
    there: dict[str, set[str]] = {"rule": set(), "class": set(), "kind": set()}
    for what, name, value in steps:
        if what == "slice":
            new = None if value is None else slice_of(name, *value)
            slices.pop(name, None)
            kept.put_slice(name, new)
            slices |= {name: new} if new is not None else {}
        elif what != "kind" or value != (name in there[what]):
            put_named(kept, what, name, there=value)
            (there[what].add if value else there[what].discard)(name)
        kept.refresh()
    fresh = Inventory()
    for name, one in slices.items():
        fresh.put_slice(name, one)
    for what, names in there.items():
        for name in names:
            put_named(fresh, what, name, there=True)
    fresh.refresh()
    for node in ("n0", "n1"):
        assert kept.offers(node, {}) == fresh.offers(node, {})
    taken, expected = ({kind: set(each.rows.taken[kind]) for kind in each.rows.taken} for each in (kept, fresh))
    assert taken == expected


@pytest.mark.parametrize(("slices", "count"), [
    pytest.param([{}], 2, id="whole"),
    pytest.param([{"pool": {"name": "n", "generation": 1, "resourceSliceCount": 2}}], 0, id="a slice is missing"),
    pytest.param([{}, {}], 0, id="a slice too many"),
    pytest.param([{"pool": {"name": "n", "generation": 2, "resourceSliceCount": 1}}, {"devices": [device("d0")]}], 2,
                 id="an old slice"),
    pytest.param([{"pool": {"name": "n", "generation": 1, "resourceSliceCount": 2}}] * 2, 0,
                 id="two devices of one name"),
    pytest.param([{"nodeName": "", "allNodes": True}], 0, id="of all nodes"),
])  # fmt: skip
def test_pools_that_can_be_used(slices: list[dict[str, Any]], count: int) -> None:
    """As kube-scheduler has it."""
    kept = Inventory()
    put_named(kept, "class", "gpu", there=True)
    for number, more in enumerate(slices):
        kept.put_slice(str(number), slice_of("n", "40Gi", "40Gi", **more))
    kept.refresh()
    assert sum(kept.offers("n", {}).values()) == count


@pytest.mark.parametrize(("rule", "left"), [
    ("all", [0, 0]), ("none", [2, 2]), ("n0", [0, 2]), ("d0", [1, 1]), ("n1/d1", [2, 1]), ("other driver", [2, 2]),
])  # fmt: skip
def test_rules_select_by_driver_pool_and_device(rule: str, left: list[int]) -> None:
    """What a rule leaves of two nodes with two devices each; a rule without a selector is about no device."""
    kept = Inventory()
    put_named(kept, "class", "gpu", there=True)
    for node in ("n0", "n1"):
        kept.put_slice(node, slice_of(node, "40Gi", "40Gi"))
    put_named(kept, "rule", rule, there=True)
    kept.refresh()
    assert [sum(kept.offers(node, {}).values()) for node in ("n0", "n1")] == left


def test_more_kinds_than_the_limit_are_told_and_counted_once_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first come, first served; nobody's count is hurt by who comes later."""
    monkeypatch.setattr(inventory, "DEVICE_KINDS", inventory.DEVICE_KINDS._replace(value=2))
    world = Devices().gpus(1, 2).device_class()
    for number in range(2):
        world.template(f"t{number}", asks(exactly("gpu", 1, f"{number} == {number}")))
    [second] = {kind for kind in world.state.devices.inventory._wanted if "1 == 1" in kind.name}
    assert "more than 2 kinds" in world.state.devices.inventory.unseen(second)
    world.gone(ResourceClaimTemplate, world.state.claimants.on_template, "t0")
    assert (world.state.devices.inventory.unseen(second), world.free("node-0", second.name)) == ("", 2)


@pytest.mark.parametrize("namespaces", [("eve",), ("eve", "mallory")])
def test_no_namespace_uses_up_the_kinds_of_others(monkeypatch: pytest.MonkeyPatch, namespaces: tuple[str, ...]) -> None:
    """Neither with kinds of its own nor with those of two namespaces of one user; device classes come first."""
    monkeypatch.setattr(inventory, "DEVICE_KINDS", inventory.DEVICE_KINDS._replace(value=8))
    world = Devices().gpus(1, 2).device_class()
    devices, on_template = world.state.devices.inventory, world.state.claimants.on_template

    def template(namespace: str, number: int) -> None:
        text = f"'{namespace if namespace == 'ns' else 'eve'}' != '{number}'"
        spec = {"spec": asks(exactly("gpu", 1, text))}
        world.tell(ResourceClaimTemplate, on_template, f"{namespace}-{number}", spec, namespace=namespace)

    def counted(text: str) -> int:
        return sum(not devices.unseen(kind) for kind in devices._wanted if text in kind.name)

    for number in range(20):
        for namespace in namespaces:
            template(namespace, number)
    assert counted("eve") == 7
    for number in range(20):
        template("ns", number)
    assert (counted("'ns'"), counted("eve")) == (3, 4)
    world.device_class("nic")
    assert not devices.unseen(kind_of_class("nic"))
    for number in range(20):
        for namespace in namespaces:
            world.gone(ResourceClaimTemplate, on_template, f"{namespace}-{number}")
    assert (counted("'ns'"), counted("eve")) == (6, 0)


def test_newer_classes_win_an_extended_resource() -> None:
    """As in kube-scheduler; of two of one moment the first by name."""
    kept = Inventory()
    for name, created in (("a", "2026-01-01T00:00:00Z"), ("c", "2026-01-02T00:00:00Z"), ("b", "2026-01-02T00:00:00Z")):
        made = class_named("gpu")
        made.metadata = ObjectMeta(name=name, creation_timestamp=created)
        made.spec.extended_resource_name = "example.com/gpu"
        kept.put_class(name, made)
    assert kept.extended == {"example.com/gpu": "b"}
    kept.refresh()
    found = {kind.classes[0]: name.rpartition("/")[2] for kind, name in kept.rows.name_of.items()}
    assert found == {"a": "a", "b": "gpu", "c": "c"}


ANY = "deviceclass.resource.kubernetes.io/large"


def two_classes() -> Inventory:
    """Classes `gpu`, of an extended resource, and `large`, a part of it; n1 has three devices, one of them large."""
    kept = Inventory()
    made = class_named("gpu")
    made.spec.extended_resource_name = "example.com/gpu"
    kept.put_class("gpu", made)
    every = class_named("gpu")
    every.metadata = ObjectMeta(name="large")
    every.spec.selectors.append(class_named("large").spec.selectors[0])
    kept.put_class("large", every)
    kept.put_slice("n1", slice_of("n1", "40Gi", "80Gi", "40Gi"))
    kept.refresh()
    return kept


def test_what_a_device_plugin_offers_stays_and_counts_for_what_includes_it() -> None:
    """A large device is one of the devices of its class, and takes one of each."""
    kept = two_classes()
    assert kept.offers("n1", {}) == {"example.com/gpu": 3, ANY: 1}
    assert kept.offers("n0", {"example.com/gpu": 4, "cpu": 1}) == {}
    assert kept.offers("n1", {"example.com/gpu": 4}) == {ANY: 1}
    assert kept.offers("n1", {"example.com/gpu": 0}) == kept.offers("n1", {})
    assert kept.used([(DRIVER, "n1", "d1"), (DRIVER, "n1", "d0")]) == {"example.com/gpu": 2, ANY: 1}
    assert kept.used([(DRIVER, "n1", "d9"), (DRIVER, "n9", "d0"), ("other", "n1", "d0")]) == {}
    large = DeviceKind((DeviceAlternative("large"),))
    assert set(kept.rows.asked(large, 2).items()) == {("example.com/gpu", 2), (ANY, 2)}
    assert [kept.class_of(name) for name in ("example.com/gpu", ANY, f"{ANY}-", "cpu")] == ["gpu", "large", "", ""]
    assert [*kept.nodes] == ["n1"]


@pytest.mark.parametrize("odd", [
    pytest.param({"consumesCounters": [{"counterSet": "c", "counters": {"n": {"value": "1"}}}]}, id="a part"),
    pytest.param({"allowMultipleAllocations": True}, id="shared"),
])  # fmt: skip
def test_a_kind_with_a_device_that_is_no_whole_one_is_not_counted(odd: dict[str, Any]) -> None:
    """Others are; and it is, once that device is gone."""
    kept = two_classes()
    devices = [device("d0", memory="80Gi"), device("d1", memory="40Gi", **odd)]
    kept.put_slice("n0", slice_of("n0", devices=devices))
    kept.refresh()
    gpu, large = DeviceKind((DeviceAlternative("gpu"),)), DeviceKind((DeviceAlternative("large"),))
    assert (bool(kept.unseen(gpu)), bool(kept.unseen(large))) == (True, False)
    assert "not on a single node" in kept.unseen(gpu)
    assert kept.offers("n0", {}) == {"example.com/gpu": 1, ANY: 1}
    assert kept.put_slice("n0", slice_of("n0", devices=devices[:1])) == {"n0"}
    kept.refresh()
    assert kept.unseen(gpu) == ""
    changes = [kept.put_slice("n0", each) for each in (slice_of("n0", devices=devices[:1]), None, None)]
    assert (changes, kept.offers("n0", {})) == ([set(), {"n0"}, set()], {})


def test_devices_are_alike_if_each_node_has_one_value() -> None:
    """Of the kinds that are meant; nodes may differ."""
    kept, rail = two_classes(), "rails.example.com/rail"

    def put(node: str, *rails: str) -> None:
        attributes = [{"attributes": {rail: {"string": each}}} for each in rails]
        devices = [device(f"d{at}", memory="80Gi", **each) for at, each in enumerate(attributes)]
        kept.put_slice(node, slice_of(node, devices=devices))
        kept.refresh()

    large = (DeviceKind((DeviceAlternative("large"),)),)
    put("n1", "a", "a")
    put("n0", "b", "b")
    assert kept.uniform(large, rail)
    assert kept.uniform((*large, *large), rail)
    put("n0", "b", "a")
    assert not kept.uniform(large, rail)
    assert kept.uniform((DeviceKind((DeviceAlternative("none"),)),), rail)
    put("n0", "a", "a")
    assert kept.uniform(large, rail)


def test_a_kind_stays_for_as_long_as_anybody_wants_it() -> None:
    """As often as it was wanted; all of a node is a resource of its own for as long as that is wanted."""
    kept = two_classes()
    kind = DeviceKind((DeviceAlternative("gpu", ("true",)),))
    for _ in range(2):
        kept.want(kind, whole=True)
    kept.refresh()
    assert {name for name, amount in kept.offers("n1", {}).items() if amount > 1000} == {f"{kind.name} (all of a node)"}
    for wanted in (True, False):
        kept.uncount(kind, whole=True)
        kept.refresh()
        assert (kind in kept.rows.whole_of) is (kind in kept.rows.name_of) is wanted
        assert not kept.refresh()
    assert kept.offers("n1", {}) == two_classes().offers("n1", {})

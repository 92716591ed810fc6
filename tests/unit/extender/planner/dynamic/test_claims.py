"""A claim is read as so many devices of each kind; what cannot be counted says why."""

from typing import Any

import msgspec
import pytest
from devices_world import DRIVER, asks, device, exactly

from extender.planner.dynamic.claims import Alike, DeviceAlternative, DeviceDemand, DeviceKind, Tolerated, demand_of
from muster.api.kubernetes.devices import Device, DeviceClass, DeviceTaint, ResourceClaimSpec

GPU, NIC = DeviceKind((DeviceAlternative("gpu"),)), DeviceKind((DeviceAlternative("nic"),))
RAIL = ("example.com/rail",)
LIKE_GPU, LIKE_NIC = (DeviceKind((DeviceAlternative(name, attributes=RAIL),)) for name in ("gpu", "nic"))
SAME_RAIL = {"matchAttribute": "example.com/rail"}
R0 = "request 'r0': "
ALL = {"deviceClassName": "gpu", "allocationMode": "All"}


def either(*ways: dict[str, Any]) -> dict[str, Any]:
    """A request for the first of these that is available."""
    return {"firstAvailable": [{"name": f"w{number}", **way} for number, way in enumerate(ways)]}


DEMANDS: dict[str, tuple[dict[str, Any], DeviceDemand]] = {
    "nothing": (asks(), DeviceDemand()),
    "one": (asks(exactly(count=0)), DeviceDemand(((GPU, 1),))),
    "three": (asks(exactly(count=3)), DeviceDemand(((GPU, 3),))),
    "two kinds": (asks(exactly(), exactly("nic", 2)), DeviceDemand(((GPU, 1), (NIC, 2)))),
    "all": (asks(ALL), DeviceDemand(all_of=(GPU,))),
    "all, and one": (asks(ALL, exactly("nic")), DeviceDemand(((NIC, 1),), (GPU,))),
    "access": (asks(exactly(count=2, adminAccess=True)), DeviceDemand(beside=((GPU, 2),))),
    "access to all": (asks(ALL | {"adminAccess": True}), DeviceDemand(beside=((GPU, 1),))),
    "one way": (asks(either(exactly(count=2))), DeviceDemand(((GPU, 2),))),
    "two ways": (asks(either(exactly(), exactly("nic"))),
                 DeviceDemand(((DeviceKind((DeviceAlternative("gpu"), DeviceAlternative("nic"))), 1),))),
    "ways of more than one": (asks(either(exactly(), exactly("nic", 2))),
                              DeviceDemand(unseen=(R0 + "some alternatives request more than one device",))),
    "a way of a part": (asks(either(exactly(), exactly(capacity={}), exactly(capacity={"requests": {}}))),
                        DeviceDemand(unseen=(R0 + "the request is for a part of a device",))),
    "no way": (asks({"firstAvailable": []}, exactly()),
               DeviceDemand(((GPU, 1),), unseen=(R0 + "this version of Muster does not know the request's kind",))),
    "a mode": (asks(exactly(allocationMode="Some")),
               DeviceDemand(unseen=(R0 + "this version of Muster does not know the allocation mode 'Some'",))),
    "the usual mode": (asks(exactly(allocationMode="ExactCount")), DeviceDemand(((GPU, 1),))),
    "alike": (asks(exactly(), exactly("nic"), constraints=[SAME_RAIL]),
              DeviceDemand(((LIKE_GPU, 1), (LIKE_NIC, 1)), alike=(Alike("example.com/rail", (LIKE_GPU, LIKE_NIC)),))),
    "two alike": (asks(exactly(count=2), exactly("nic"), constraints=[SAME_RAIL | {"requests": ["r0"]}]),
                  DeviceDemand(((LIKE_GPU, 2), (NIC, 1)), alike=(Alike("example.com/rail", (LIKE_GPU,)),))),
    "one is alike": (asks(exactly(), exactly("nic"), constraints=[SAME_RAIL | {"requests": ["r1/w0"]}]),
                     DeviceDemand(((GPU, 1), (LIKE_NIC, 1)))),
    "another constraint first": (
        asks(exactly(count=2), constraints=[{"distinctAttribute": "example.com/rail"}, SAME_RAIL]),
        DeviceDemand(
            ((LIKE_GPU, 2),), alike=(Alike("example.com/rail", (LIKE_GPU,)),),
            unseen=("a constraint of the claim has an unknown kind",),
        ),
    ),
    "another constraint": (asks(exactly(), constraints=[{"distinctAttribute": "example.com/rail"}]),
                           DeviceDemand(((GPU, 1),), unseen=("a constraint of the claim has an unknown kind",))),
}  # fmt: skip


def test_requests_beyond_the_longest_expressions_are_left_to_kube_scheduler() -> None:
    """A claim may have a megabyte of them, and a demand would keep them in memory."""
    long = exactly("nic", 1, "true || " * 800, "true || " * 800)
    demand = demand_of(msgspec.convert(asks(exactly(), long, exactly()), ResourceClaimSpec))
    assert demand.counts == ((GPU, 1),)
    why = "the expression is too long or has too many loops"
    assert demand.unseen == tuple(f"request 'r{number}': {why}" for number in (1, 2))


@pytest.mark.parametrize("what", DEMANDS)
def test_what_a_claim_asks_for(what: str) -> None:
    """All that it asks for, and nothing else; its kinds are those that are named in any way."""
    spec, expected = DEMANDS[what]
    found = demand_of(msgspec.convert(spec, ResourceClaimSpec))
    assert found == expected
    assert found.kinds == {*[kind for kind, _ in (*expected.counts, *expected.beside)], *expected.all_of}


@pytest.mark.parametrize(("wanted", "name"), [
    ((DeviceAlternative("gpu"),), "gpu"),
    ((DeviceAlternative("gpu", ("a", "b")),), "gpu[a && b] (mark)"),
    ((DeviceAlternative("gpu", ("a",)),), "gpu[a]"),
    ((DeviceAlternative("gpu", ("a" * 155,)),), f"gpu[{'a' * 155}]"),
    ((DeviceAlternative("gpu", attributes=("rail",)),), "gpu[has rail] (mark)"),
    ((DeviceAlternative("gpu"), DeviceAlternative("nic")), "gpu or nic (mark)"),
    ((DeviceAlternative("gpu", ("a" * 156,)),), f"gpu[{'a' * 156} (mark)"),
    ((DeviceAlternative("gpu", (), (Tolerated("", "Exists", "", ""),)),), "gpu (mark)"),
])  # fmt: skip
def test_a_kind_is_named_by_what_it_must_be(wanted: tuple[DeviceAlternative, ...], name: str) -> None:
    """As Kubernetes names a class; where the words leave something out, a mark tells kinds apart."""
    words, _, mark = DeviceKind(wanted).name.removeprefix("deviceclass.resource.kubernetes.io/").partition(" (")
    assert words == name.partition(" (")[0]
    assert len(mark) == (9 if "(" in name else 0)


@pytest.mark.parametrize(("toleration", "covered"), [
    (Tolerated("", "Exists", "", ""), True),
    (Tolerated("sick", "Exists", "", ""), True),
    (Tolerated("sick", "Equal", "yes", ""), True),
    (Tolerated("sick", "Equal", "no", ""), False),
    (Tolerated("well", "Exists", "", ""), False),
    (Tolerated("", "Equal", "yes", ""), False),
    (Tolerated("sick", "Exists", "", "NoExecute"), True),
    (Tolerated("sick", "Exists", "", "NoSchedule"), False),
])  # fmt: skip
def test_a_device_with_a_taint_is_for_who_tolerates_it(toleration: Tolerated, *, covered: bool) -> None:
    """A taint without an effect that keeps pods away is nothing to tolerate."""
    classes = {"gpu": DeviceClass()}
    one = msgspec.convert(device("d"), Device)
    one.taints = [DeviceTaint("sick", "yes", "NoExecute")]
    assert DeviceAlternative("gpu", (), (toleration,)).matched_by(DRIVER, one, classes) is covered
    one.taints = [DeviceTaint("sick", "yes", "None")]
    assert DeviceAlternative("gpu").matched_by(DRIVER, one, classes)


def test_a_device_is_of_a_kind_if_one_way_fits() -> None:
    """By its class, which must be there, its expressions and the attributes that it must have."""
    one, classes = msgspec.convert(device("d", model="a"), Device), {"gpu": DeviceClass()}
    for fits, ways in (
        (True, [DeviceAlternative("none"), DeviceAlternative("gpu")]),
        (False, [DeviceAlternative("none")]),
        (False, [DeviceAlternative("gpu", ("false",))]),
        (True, [DeviceAlternative("gpu", ("true",), attributes=(f"{DRIVER}/model",))]),
        (False, [DeviceAlternative("gpu", attributes=(f"{DRIVER}/model", f"{DRIVER}/none"))]),
    ):
        assert DeviceKind(tuple(ways)).matched_by(DRIVER, one, classes) is fits, ways

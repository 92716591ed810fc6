"""What happened on real planes are steps of the model; tests/plane/test_traces.py records them.

The other tests change a trace, so that it tells of something that must not happen: the replay says what.
"""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from builders import manifests
from interleavings.replay import Replayed, replay, who
from interleavings.trace import Asked, Entry, read

from muster.api.kubernetes.core import NODES, PODS
from muster.api.muster.placement import PLACEMENTS
from muster.api.volcano.scheduling import POD_GROUPS

KEPT = sorted((Path(__file__).parent / "traces").glob("*.jsonl.gz"))


@pytest.fixture(scope="module")
def encoded() -> bytes:
    """A storm with kills."""
    return msgspec.json.encode(read(Path(__file__).parent / "traces" / "storm.jsonl.gz"))


@pytest.fixture
def entries(encoded: bytes) -> list[Entry]:
    """Its entries, which a test may change."""
    return msgspec.json.decode(encoded, type=list[Entry])


def is_binding(entry: Entry) -> bool:
    """Whether the extender has bound a member of a gang by this."""
    member = entry.by is not None and "scheduling.k8s.io/group-name" in entry.by.body.get("annotations", {})
    return member and bool(entry.what) and entry.by is not None and entry.by.verb == "bind"


def first_binding(entries: list[Entry]) -> int:
    """The place of the first one."""
    return next(at for at, entry in enumerate(entries) if is_binding(entry))


def failed(entries: list[Entry]) -> Replayed:
    """The replay, which has a story to tell."""
    found = replay(entries)
    assert found.failure
    assert found.story
    return found


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.name.partition(".")[0])
def test_a_kept_trace(path: Path) -> None:
    """The model has each of its steps, and all that must hold holds after each."""
    found = replay(read(path))
    assert not found.failure, found.told()
    assert found.steps["answer"] > 20
    assert found.steps["kubelet"] > 20


def test_a_binding_before_its_placement(entries: list[Entry]) -> None:
    """A member is bound while its placement is not written."""
    at = first_binding(entries)
    binding = entries[at]
    assert binding.by is not None
    gang = binding.by.body["annotations"]["scheduling.k8s.io/group-name"]
    for entry in entries[:at]:
        if entry.kind == "podgroups" and entry.object["metadata"]["name"] == gang:
            entry.object["metadata"]["annotations"].pop("muster.dev/placement", None)
    without = [
        entry
        for entry in entries
        if not (entry.kind == "placements" and entry.object and entry.object["metadata"]["name"] == gang)
    ]
    assert "without a placement" in failed(without).failure or "which is not written" in failed(without).failure


def test_a_binding_by_an_epoch_that_is_over(entries: list[Entry]) -> None:
    """The binding names another epoch than the placement in force."""
    binding = entries[first_binding(entries)]
    assert binding.by is not None
    binding.by.body["annotations"]["muster.dev/epoch"] = "77"
    assert "is bound by epoch 77, which is over" in failed(entries).failure


def test_a_second_pod_on_a_seat(entries: list[Entry]) -> None:
    """Another pod with the same rank is there, bound, when a member is bound."""
    at = first_binding(entries)
    twin: Any = msgspec.json.decode(msgspec.json.encode(entries[at].object))
    twin["metadata"] |= {"name": "twin", "uid": "twin"}
    entries.insert(at + 1, Entry(kind="pods", what="LISTED", object=twin))
    assert "has two owners" in failed(entries).failure


def test_an_eviction_without_a_uid(entries: list[Entry]) -> None:
    """A deletion or eviction by the extender is for whatever pod has the name."""
    asked = next(each.by for each in entries if each.by and each.by.verb == "evict" and who(each.by) == "extender")
    asked.uid = ""
    assert "names no UID" in failed(entries).failure


def test_an_unknown_writer(entries: list[Entry]) -> None:
    """Somebody binds a pod whom the model does not know."""
    binding = entries[first_binding(entries)]
    assert binding.by is not None
    binding.by.user = "system:serviceaccount:default:stranger"
    assert "the model has no step in which" in failed(entries).failure


def test_a_change_that_nobody_asked_for(entries: list[Entry]) -> None:
    """A pod has a node, and the log has no request for it."""
    entries[first_binding(entries)].by = None
    assert "nobody has asked for it" in failed(entries).failure


def test_a_member_that_is_bound_alone(entries: list[Entry]) -> None:
    """The others of its gang are not asked for."""
    sizes: dict[str, list[int]] = {}
    for at, entry in enumerate(entries):
        if is_binding(entry) and entry.by is not None:
            sizes.setdefault(entry.by.body["annotations"]["scheduling.k8s.io/group-name"], []).append(at)
    several = next(places for places in sizes.values() if len(places) > 1)
    kept = [entry for at, entry in enumerate(entries) if at not in several[1:] and entry.what != "STARTED"]
    assert "members are there" in failed(kept).failure


EXTENDER = Asked("system:serviceaccount:muster-system:muster-scheduler", "muster-extender", "create", "b", "ns")
CONTROLLER = Asked("system:serviceaccount:muster-system:muster-controller", "muster-controller", "", "a-0", "ns")


def planned(gang: str, *nodes: str, of: str = "") -> dict[str, Any]:
    """An active placement of one member per node."""
    return manifests.placement(gang, {"worker": nodes}, gang_uid=of, phase="Binding", status={"started": True})


def member(gang: str, node: str = "", rank: int = 0, uid: str = "", **more: Any) -> dict[str, Any]:
    """A member of a gang; it needs all GPUs of a node."""
    name = f"{gang}-{rank}"
    more |= {"limits": {"nvidia.com/gpu": 1}, "task": "worker", "index": rank, "uid": uid or name, "version": "1"}
    return manifests.pod(name, node=node, gang=gang, **more)


def by_controller(verb: str, what: str, pod: dict[str, Any]) -> Entry:
    """A change of a pod by the controller."""
    return Entry(PODS.plural, what, pod, by=msgspec.structs.replace(CONTROLLER, verb=verb))


PLAN_B = Entry(PLACEMENTS.plural, "ADDED", planned("b", "n"), by=EXTENDER)
ENDED = member("a", "n", phase="Succeeded")
DELETED, AGAIN = by_controller("delete", "DELETED", ENDED), by_controller("create", "ADDED", member("a", uid="again"))
TWICE = "node n is planned for more members than it has nvidia.com/gpu for"


@pytest.mark.parametrize(
    ("first", "of", "changes", "finding"),
    [
        (member("a", "n"), "", [PLAN_B], TWICE),
        (ENDED, "", [PLAN_B, DELETED], ""),
        (ENDED, "", [DELETED, PLAN_B], ""),
        (ENDED, "", [DELETED, AGAIN, PLAN_B], TWICE),
        (ENDED, "", [DELETED, AGAIN, by_controller("delete", "DELETED", AGAIN.object), PLAN_B], TWICE),
        (member("a", "n", phase="Failed"), "", [by_controller("delete", "DELETED", member("a", "n")), PLAN_B], TWICE),
        (member("a"), "", [PLAN_B], TWICE),
        (member("a"), "an earlier PodGroup", [PLAN_B], ""),
    ],
)
def test_a_node_is_planned_for_two_gangs(first: dict[str, Any], of: str, changes: list[Entry], finding: str) -> None:
    """The place of a member that has succeeded is free, also when a Job that restarts has deleted its pod."""
    listed = [
        *((NODES, manifests.node(name, gpus=1)) for name in "nm"),
        *((POD_GROUPS, manifests.pod_group(gang, uid=f"uid-{gang}")) for gang in "ab"),
        *((PODS, pod) for pod in (first, member("a", "m", 1), member("b"))),
        (PLACEMENTS, planned("a", "n", "m", of=of)),
    ]
    found = replay([*(Entry(kind.plural, "LISTED", one) for kind, one in listed), *changes])
    assert found.failure.partition(" (")[0] == finding

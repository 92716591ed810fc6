"""Why a pod has no node, and what is said about names that do not exist."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from explain_world import ExplainWorld
from extender_world import GPU8

from extender.explain.report import UnknownNameError
from extender.planner.framework import decisions
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.meta import OwnerReference
from muster.api.names import QUEUE_ALLOCATION_GATE


@dataclass(frozen=True)
class Case:
    """A cluster with the pod `a-worker-0`, and what is said about it."""

    build: Callable[[ExplainWorld], object]
    cause: str
    words: tuple[str, ...]


def start(world: ExplainWorld, **pod: Any) -> None:
    """Gang `a` with a placement, and a pod of it."""
    world.nodes(2)
    key = world.gang("a", {"worker": (2, GPU8)})
    world.plan()
    world.pod(key, "worker", 0, GPU8, **pod)


def held(world: ExplainWorld, *gates: str) -> None:
    """Its gang has no room, and the pod waits behind these gates."""
    world.nodes(2)
    world.runs("first", 2, GPU8)
    world.pod(world.gang("a", {"worker": (2, GPU8)}), "worker", 0, GPU8, other_gates=gates)


def gated(world: ExplainWorld) -> None:
    """It waits behind Muster's gate."""
    held(world, "muster.dev/gang")


def old_epoch(world: ExplainWorld) -> None:
    """The gang was placed again after the pod was pinned."""
    start(world, pin="node-1", epoch=1)
    world.change(world.state.placements["ns/a"], spec={"epoch": 2})


def not_there(world: ExplainWorld) -> None:
    """A pod of a gang whose PodGroup nobody has made."""
    world.pod("ns/a", "worker", 0, GPU8, gated=True)


def plain(world: ExplainWorld, scheduler: str, **spec: Any) -> None:
    """A pod without a gang on a cluster of one full node."""
    world.nodes(1)
    world.runs("first", 1, GPU8)
    pod = {
        "metadata": msgspec.to_builtins(world.meta("a-worker-0")),
        "spec": {**world.pod_spec(GPU8), "schedulerName": scheduler, **spec},
        "status": {"phase": "Pending"},
    }
    world.state.on_pod(None, msgspec.convert(pod, Pod))


CASES = {
    "gated": Case(gated, "gated", ("behind the gate muster.dev/gang until its gang has a placement",)),
    "pinned": Case(lambda world: start(world, pin="node-0", epoch=1), "not-tried",
                   ("pinned to node-0 by placement 1", "abandoned at")),
    "old epoch": Case(old_epoch, "old-epoch", ("pinned to node-1 by placement 1", "now 2 (Planned)", "creates it")),
    "newer epoch": Case(lambda world: start(world, pin="node-0", epoch=5), "newer-epoch",
                        ("placement 5, which does not exist",)),
    "wrong pin": Case(lambda world: start(world, pin="node-1", epoch=1), "wrong-pin", ("gives its slot node-0",)),
    "refused": Case(lambda world: start(world, pin="node-0", epoch=1, refused=True), "refused",
                    ("kube-scheduler refused the pod on node-0",)),
    "running": Case(lambda world: start(world, node="node-0", phase="Running"), "running", ("the pod runs on node-0",)),
    "bound": Case(lambda world: start(world, node="node-0"), "bound", ("the pod is bound to node-0",)),
    "finished": Case(lambda world: start(world, node="node-0", phase="Succeeded"), "finished",
                     ("Succeeded on node-0",)),
    "terminating": Case(lambda world: start(world, deletion_timestamp="2027-01-15T08:00:00Z"), "terminating",
                        ("the pod has been terminating",)),
    "gang missing": Case(not_there, "gang-missing", ("the pod's PodGroup ns/a does not exist",)),
    "other scheduler": Case(lambda world: plain(world, "default-scheduler"), "other-scheduler",
                            ("the scheduler 'default-scheduler'",)),
    "other gates": Case(lambda world: plain(world, "muster", schedulingGates=[{"name": "example.com/wait"}]),
                        "other-gates", ("not Muster's: example.com/wait",)),
    "gates of Muster's and others": Case(
        lambda world: held(world, "muster.dev/gang", QUEUE_ALLOCATION_GATE, "example.com/wait"), "gated",
        (f"the gate muster.dev/gang and {QUEUE_ALLOCATION_GATE} until", "still held by example.com/wait")),
    "gate by annotation": Case(lambda world: held(world, QUEUE_ALLOCATION_GATE), "gated",
                               (f"the gate {QUEUE_ALLOCATION_GATE} until",)),
    "no gang": Case(lambda world: plain(world, "muster"), "no-gang",
                    ("of 1 node: 1 too little nvidia.com/gpu; 1 more node with 8 free nvidia.com/gpu is needed",)),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_pod_is_explained(case: Case) -> None:
    """Cause and sentence."""
    world = ExplainWorld()
    case.build(world)
    report = world.pod_report("a-worker-0")
    assert report.cause == case.cause, report.summary
    for words in case.words:
        assert words in report.summary


def test_a_pod_says_its_slot_and_tells_of_its_gang() -> None:
    """What the pod waits for is the gang."""
    world = ExplainWorld()
    gated(world)
    report = world.pod_report("a-worker-0")
    assert (report.slot, report.gates, report.gang.cause) == ("worker 0", ["muster.dev/gang"], "no-room")


@pytest.mark.parametrize(("kind", "name", "words"), [
    ("gang", "trian-1", "there is no gang 'trian-1' in namespace 'ns'; near names: train-1"),
    ("job", "trian-1", "there is no job with a gang 'trian-1' in namespace 'ns'; near names: train-1"),
    ("pod", "train-1-worker-1", "near names: train-1-worker-0"),
    ("gang", "quite-else", "there are: train-1"),
])  # fmt: skip
def test_an_unknown_name_is_answered_with_near_ones(kind: str, name: str, words: str) -> None:
    """So that a slip of the finger costs nothing."""
    world = ExplainWorld().nodes(1)
    world.runs("train-1", 1, GPU8)
    with pytest.raises(UnknownNameError) as error:
        world.explain(name, kind)
    assert words in str(error.value)


def test_gangs_that_are_there_are_called_as_their_owners_are() -> None:
    """The PodGroup of a plain Job has a name that nobody has written."""
    world = ExplainWorld().nodes(1)
    group = world.state.groups[world.runs("train-1", 1, GPU8)]
    owner = OwnerReference(api_version="batch/v1", kind="Job", name="longrun", uid="u", controller=True)
    meta = msgspec.structs.replace(group.metadata, name="podgroup-0b3f", uid="other", owner_references=[owner])
    world.state.on_pod_group(None, msgspec.structs.replace(group, metadata=meta))
    with pytest.raises(UnknownNameError, match=r"there are: longrun, train-1$"):
        world.explain("quite-else", "gang")


def test_a_job_is_found_by_its_own_name_and_says_so_when_it_has_no_gang_yet() -> None:
    """The PodGroup carries the Job's UID in its name; before there is one, the Job's phase is all there is."""
    world = ExplainWorld().nodes(1)
    world.runs("train", 1, GPU8)
    assert world.explain("train", "job").cause == "running"
    world.state.on_pod_group(world.state.groups["ns/train"], None)
    report = world.explain("train", "job")
    assert report.cause == "no-pod-group"
    assert "check that Muster's controller runs" in report.summary


def test_explaining_decides_what_the_planner_decides() -> None:
    """The sentence is the one of the condition."""
    world = ExplainWorld()
    gated(world)
    [waits] = [each for each in world.plan().decisions if isinstance(each, decisions.Unschedulable)]
    assert world.gang_report("a").summary == f"it waits: {waits.message}"

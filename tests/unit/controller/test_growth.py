"""Members above the minimum of a Job in a queue with a capability: which of them are created now."""

import pytest
from builders import job as a_job
from builders import pod as a_pod
from hypothesis import given
from hypothesis import strategies as st

from controller.job.rules.sync import next_members
from muster.api.kubernetes.core import Pod
from muster.api.muster.gang import Slot
from muster.api.volcano.batch import Job, PartitionPolicy, TaskSpec
from muster.api.volcano.scheduling import OVER_CAPABILITY, PodGroup, PodGroupCondition, PodGroupPhase, PodGroupStatus
from muster.volcano.tasks import slots


def job(*tasks: TaskSpec, least: int = 0) -> Job:
    """Job `j` with these tasks and this minimum."""
    return a_job("j", list(tasks), "n", uid="u", min_available=least)


def group(phase: PodGroupPhase = "Running", reason: str = "") -> PodGroup:
    """Its PodGroup, which waits for this reason."""
    waits = [PodGroupCondition(type="Unschedulable", status="True", reason=reason)] if reason else []
    return PodGroup(status=PodGroupStatus(phase=phase, conditions=waits))


def pods(states: str, task: str = "w") -> list[Pod]:
    """One pod per index: r has a node, g waits, s has succeeded, - does not exist."""
    phases = {"r": "Running", "g": "Pending", "s": "Succeeded"}
    made = []
    for index, state in enumerate(states):
        if state != "-":
            made.append(a_pod(f"j-{task}-{index}", status={"phase": phases[state]}))
            made[-1].spec.node_name = "a" if state == "r" else ""
    return made


def created(of: Job, there: list[Pod], what: PodGroup, placed: frozenset[Slot] = frozenset()) -> list[str]:
    """The names of the pods that are created, without the Job's name."""
    names = {pod.metadata.name for pod in there}
    missing = [slot for slot in slots(of) if slot.name not in names]
    found = next_members(of, there, missing, what, placed)
    return [slot.name.removeprefix("j-") for slot in found]


@pytest.mark.parametrize(("states", "what", "expected"), [
    ("", group("Inqueue"), ["w-0", "w-1", "w-2"]),
    ("rrg", group(reason=OVER_CAPABILITY), []),
    ("rrr", group(), ["w-3"]),
    ("rrrr", group(), ["w-4", "w-5"]),
    ("rrrrg", group(), ["w-5"]),
    ("rrsr", group(), ["w-4", "w-5"]),
    ("-rg", group(reason=OVER_CAPABILITY), ["w-0"]),
    ("rrg", group(reason="NotEnoughResources"), ["w-3", "w-4", "w-5", "w-6", "w-7"]),
    ("", group("Inqueue", "NotEnoughResources"), ["w-0", "w-1", "w-2"]),
])  # fmt: skip
def test_one_member_waits_and_then_as_many_as_have_nodes(states: str, what: PodGroup, expected: list[str]) -> None:
    """Of a Job of 8 with a minimum of 2. A gang that waits for nodes gets all pods, which autoscalers can see."""
    assert created(job(TaskSpec(name="w", replicas=8), least=2), pods(states), what) == expected


def test_members_with_a_planned_node_are_created() -> None:
    """Otherwise the placement would wait for them."""
    of, placed = job(TaskSpec(name="w", replicas=8), least=2), frozenset({Slot("w", 5), Slot("w", 7)})
    assert created(of, pods("rrg"), group(), placed) == ["w-5", "w-7"]


@pytest.mark.parametrize(("of", "expected"), [
    (job(TaskSpec(name="a", replicas=2, min_available=1), TaskSpec(name="b", replicas=3)), 5),
    (job(TaskSpec(name="a", replicas=3, min_available=1), TaskSpec(name="b", replicas=3, min_available=1)), 3),
    (job(TaskSpec(name="a", replicas=3, min_available=1), TaskSpec(name="b", replicas=3), least=5), 6),
    (job(TaskSpec(name="a", replicas=3), TaskSpec(name="b", replicas=3), least=2), 6),
    (job(TaskSpec(name="a", replicas=6, partition_policy=PartitionPolicy(3, 2, 1)), least=2), 6),
], ids=["one more", "two minimums", "more than the minimums", "any may be in the minimum", "partitions"])  # fmt: skip
def test_the_minimum_is_created_at_once(of: Job, expected: int) -> None:
    """With one further member; all pods if any may be needed for the minimum, or if they start in partitions."""
    assert len(created(of, [], group("Inqueue"))) == expected


@given(st.integers(0, 9), st.integers(1, 9))
def test_all_members_exist_once_the_queue_holds_them(least: int, replicas: int) -> None:
    """However many steps it takes: each step creates some until none is missing."""
    of, there = job(TaskSpec(name="w", replicas=replicas), least=min(least, replicas)), ""
    while len(there) < replicas:
        more = created(of, pods(there), group())
        assert more
        there += "r" * len(more)

"""What a view of a gang answers: its minimums, today's and those it started with, its times, and what it is called."""

from typing import Any

import msgspec
import pytest
from builders import pod as a_pod
from hypothesis import given
from hypothesis import strategies as st

from extender.planner.state.avoided import FailedMembers, avoided_nodes, entries_of
from extender.planner.state.gangs import GangView
from extender.planner.state.podclass import ClassTable
from extender.planner.state.pods import PodRecord, record_of
from extender.planner.state.podset import PodSetView
from muster.api import names
from muster.api.kubernetes.constraints import SchedulingGate
from muster.api.kubernetes.meta import ObjectMeta, OwnerReference
from muster.api.kubernetes.scheduling import NATIVE_POD_GROUPS
from muster.api.muster.placement import AvoidedNode, Placement, StartedWith
from muster.api.volcano.scheduling import PodGroup, PodGroupSpec
from muster.resources.runtime import UNKNOWN, Runtime

CLASSES = ClassTable()
NOW = 1_800_000_000.0


def least(members: int, **sets: int) -> StartedWith:
    """A minimum."""
    return StartedWith(min_member=members, min_task_member=sets)


def record(name: str = "p", *, gates: tuple[str, ...] = (), **more: Any) -> PodRecord:
    """A pod of the gang."""
    pod = a_pod(name, **more)
    pod.spec.scheduling_gates = [SchedulingGate(name=gate) for gate in gates]
    return record_of(pod, CLASSES.of_pod(pod), "")


def pod_set(name: str = "a", replicas: int = 3, minimum: int = 0, taken: int = 0, **more: Any) -> PodSetView:
    """A pod set of which so many members run."""
    return PodSetView(name, None, replicas, minimum, dict.fromkeys(range(taken), "n"), alive=taken, **more)


def view(
    *sets: PodSetView, least: int = 3, pods: tuple[PodRecord, ...] = (), placement: dict[str, Any] | None = None,
    restarts: bool = False, **meta: Any,
) -> GangView:  # fmt: skip
    """A gang with these pod sets; `placement` is the status of its placement."""
    group = PodGroup(metadata=ObjectMeta(name="g", namespace="ns", **meta), spec=PodGroupSpec(min_member=least))
    placed = None if placement is None else msgspec.convert({"status": placement}, Placement)
    return GangView("ns/g", group, 0, list(sets), list(pods), placed, 0, restarts_whole=restarts)


def owned(kind: str, api_version: str = "batch/v1") -> dict[str, Any]:
    """The metadata of a PodGroup of such an owner."""
    owner = OwnerReference(api_version=api_version, kind=kind, name="train", uid="u", controller=True)
    return {"owner_references": [owner]}


@pytest.mark.parametrize(("gang", "minimums", "certain"), [
    (view(pod_set("a", 2, 1), pod_set("b", 2, 2), least=3), {"a": 1, "b": 2}, {"a": 1, "b": 2}),
    (view(pod_set("a", 2, 1), pod_set("b", 2, 2), least=4), {"a": 1, "b": 2}, {"a": 1, "b": 2}),
    (view(pod_set("a", 2, 1), pod_set("b", 2, 2), least=2), {"a": 0, "b": 0}, {"a": 0, "b": 0}),
    (view(pod_set("a", 0, 1), pod_set("b", 2, 2), least=3), {"a": 1, "b": 2}, {"a": 0, "b": 2}),
    (view(pod_set("a", 2, 1), least=5), {"a": 1}, {"a": 2}),
    (view(pod_set("a", 9, 1), least=5), {"a": 1}, {"a": 5}),
    (view(pod_set("a", 2, 1), least=5, **owned("Job")), {"a": 1}, {"a": 5}),
    (view(pod_set("a", 2, 1, mixed=True), least=5, **owned("Job")), {"a": 1}, {"a": 2}),
    (view(pod_set("a", 2, 1), least=5, **owned("JobSet", "jobset.x-k8s.io/v1alpha2")), {"a": 1}, {"a": 2}),
])  # fmt: skip
def test_minimums_per_pod_set(gang: GangView, minimums: dict[str, int], certain: dict[str, int]) -> None:
    """They count where minMember covers them all; of a single pod set all of it, as far as its pods will come."""
    assert (gang.minimums, gang.certainly_needed()) == (minimums, certain)


TODAY = least(4, a=2, b=2)


@pytest.mark.parametrize(("taken", "recorded", "started_with", "kept", "outgrew"), [
    ((2, 2), None, TODAY, TODAY, False),
    ((1, 2), None, least(3, a=1, b=2), TODAY, False),
    ((3, 0), None, least(3, a=2, b=0), TODAY, False),
    ((2, 1), least(2, a=1, b=1), least(2, a=1, b=1), least(2, a=1, b=1), False),
    ((1, 1), least(2, a=1), least(2, a=1, b=0), least(2, a=1, b=0), True),
    ((2, 2), least(2, a=1, b=1), TODAY, least(2, a=1, b=1), True),
    ((2, 1), least(9, a=9, b=9), TODAY, TODAY, True),
    ((2, 1), least(9, a=1, b=9), least(4, a=1, b=2), least(4, a=1, b=2), True),
])  # fmt: skip
def test_a_gang_goes_on_with_the_minimum_that_it_started_with(
    taken: tuple[int, int], recorded: StartedWith | None, started_with: StartedWith, kept: StartedWith, *, outgrew: bool
) -> None:
    """A minimum that is raised counts once it has been reached, one that is lowered at once."""
    status = {"phase": "Bound", "started": True, "startedWith": msgspec.to_builtins(recorded)}
    if recorded is None:
        del status["startedWith"]
    gang = view(pod_set("a", 3, 2, taken[0]), pod_set("b", 3, 2, taken[1]), least=4, placement=status)
    assert (gang.started_with(), gang.floor, gang.outgrew_minimum) == (started_with, kept, outgrew)
    assert gang.at_rest is not outgrew
    needed = kept.min_task_member
    assert gang.viable({"a": needed["a"], "b": kept.min_member - needed["a"]})
    assert not gang.viable({"a": needed["a"], "b": kept.min_member - needed["a"] - 1})
    assert not gang.viable({"a": needed["a"] - 1, "b": 9}) or not needed["a"]
    assert view(pod_set("a", 3, 2), pod_set("b", 3, 2), least=4, placement=status).floor == TODAY


@pytest.mark.parametrize(("runtimes", "declared", "expected"), [
    ([(1, Runtime(declared_s=5.0)), (1, Runtime(deadline_s=7.0))], "", 7.0),
    ([(1, Runtime(declared_s=5.0)), (1, UNKNOWN)], "", None),
    ([(1, Runtime(declared_s=5.0)), (1, UNKNOWN)], "90s", 90.0),
    ([(1, Runtime(declared_s=5.0)), (0, UNKNOWN)], "", 5.0),
    ([(0, UNKNOWN)], "90s", None),
    ([(1, Runtime(declared_s=900.0, deadline_s=60.0))], "90s", 60.0),
])  # fmt: skip
def test_the_expected_runtime_is_that_of_the_longest_pod(
    runtimes: list[tuple[int, Runtime]], declared: str, expected: float | None
) -> None:
    """Of pod sets with pods, which may run longer than their template says; for ever if one may."""
    sets = [pod_set(f"s{number}", replicas, runtime=each) for number, (replicas, each) in enumerate(runtimes)]
    annotations = {names.EXPECTED_RUNTIME: declared} if declared else {}
    assert view(*sets, annotations=annotations).runtime_s == expected
    pod = record(annotations={names.EXPECTED_RUNTIME: "1000s"})
    sets[0].waiting = {0: pod}
    assert view(*sets, annotations=annotations).runtime_s in {1000.0, None}
    runs = record(node="n", annotations={names.EXPECTED_RUNTIME: "1000s"})
    assert [view(*sets, pods=(one,)).ends for one in (runs, pod, record(node="n"))] == [True, False, False]
    assert view(*sets, pods=(record(node="n"),), annotations=annotations).ends is bool(declared)
    assert view(*sets, placement={"phase": "Planned"}).ends


def test_open_slots_are_ranks_without_members() -> None:
    """Before it has begun those of the template; then those of pods that wait and that nobody else's gate keeps."""
    waits, gated = record("w"), record("x", gates=("theirs",))
    for sets, started, expected in (
        (pod_set(replicas=4, template=True), False, [0, 1, 2, 3]),
        (pod_set(replicas=4, template=True, waiting={1: gated}), False, [0, 2, 3]),
        (pod_set(replicas=4, template=True, failed={0}), False, [1, 2, 3]),
        (pod_set(replicas=4, template=True, failed={0}, waiting={0: waits}), False, [0, 1, 2, 3]),
        (pod_set(replicas=4, template=True, born_gated=True, waiting={2: waits}), False, [2]),
        (pod_set(replicas=4, template=True, taken=3, waiting={3: waits, 1: waits, 2: gated}), True, [3]),
        (pod_set(replicas=4, waiting={3: waits, 1: gated, 0: waits}), False, [0, 3]),
    ):
        assert list(view(sets, placement={"phase": "Bound"} if started else None).open_slots["a"]) == expected
    assert view(pod_set(waiting={0: waits}), pods=(waits, gated)).gated_by_others == [gated]


def test_when_it_may_be_placed_again() -> None:
    """Not before the time of its placement, unless its pods are there, or it has started."""
    later = {"phase": "Abandoned", "notBefore": "2027-01-15T08:00:01Z"}
    pods = {rank: record(f"w{rank}") for rank in range(2)}
    assert view(pod_set(), placement=later).waits_until(NOW) == "2027-01-15T08:00:01Z"
    assert view(pod_set(), placement=later).waits_until(NOW + 1) == ""
    assert view(pod_set()).waits_until(NOW) == ""
    assert view(pod_set(waiting=pods), least=3, placement=later).waits_until(NOW) == later["notBefore"]
    assert view(pod_set(waiting=pods), least=2, placement=later).waits_until(NOW) == ""
    assert view(pod_set(taken=1, waiting=pods), least=2, placement=later).has_pods
    assert view(pod_set(taken=2), least=2, placement=later | {"started": True}).waits_until(NOW) == ""


def test_nodes_that_each_gang_leaves_out() -> None:
    """For as long as its placement says, or that of an earlier PodGroup of its name; perhaps only for failures."""

    def avoided(node: str, until: str = "2027-01-15T08:00:01Z", failures: int = 0) -> dict[str, Any]:
        return {"node": node, "until": until, "failures": failures}

    status = {"avoided": [avoided("a"), avoided("b", failures=1), avoided("over", "2027-01-15T08:00:00Z", 1)]}
    plain, avoiding, other = view(), view(placement=status), view()
    avoiding.key, other.key = "ns/avoiding", "ns/other"
    remembered = {"ns/other": (msgspec.convert(avoided("c", failures=2), AvoidedNode),)}
    gangs = [plain, avoiding, other, plain]
    assert avoided_nodes(gangs, NOW) == {"ns/avoiding": {"a", "b"}}
    assert avoided_nodes(gangs, NOW, remembered) == {"ns/avoiding": {"a", "b"}, "ns/other": {"c"}}
    assert avoided_nodes(gangs, NOW, remembered, failures=1) == {"ns/avoiding": {"b"}, "ns/other": {"c"}}
    assert avoided_nodes(gangs, NOW, remembered, failures=2) == {"ns/other": {"c"}}
    assert entries_of(other, remembered)["c"].failures == 2


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.booleans()), max_size=12))
def test_failures_are_remembered_for_some_gangs_with_the_newest_member(steps: list[tuple[int, int, bool]]) -> None:
    """Until they have been counted; beyond the bound those of the gang that failed first are forgotten."""
    known, expected = FailedMembers(most=2), dict[str, dict[str, PodRecord]]()
    for gang, node, counted in steps:
        key = f"ns/g{gang}"
        if counted:
            known.forget(key, {f"p{node}"})
            left = {where: pod for where, pod in expected.pop(key, {}).items() if pod.uid != f"p{node}"}
            expected |= {key: left} if left else {}
            continue
        pod = record(
            f"p{node}", node=f"n{node % 2}", phase="Failed", gang=f"g{gang}", uid=f"p{node}", created=str(node)
        )
        known.note(None, pod)
        there = expected.setdefault(key, {})
        if pod.node not in there or there[pod.node].created <= pod.created:
            there[pod.node] = pod
        while len(expected) > 2:
            del expected[next(iter(expected))]
    assert {key: dict(nodes) for key, nodes in known.copy().items()} == expected


def test_the_next_epoch_is_later_than_all_that_were() -> None:
    """Of its placement and of its pods' pins."""
    assert view().next_epoch() == 1
    placed = view(placement={})
    assert placed.placement is not None
    placed.placement.spec.epoch = 4
    assert placed.next_epoch() == 5
    placed.pods.append(record(annotations={names.EPOCH: "7", names.NODE: "n"}))
    assert placed.next_epoch() == 8


@pytest.mark.parametrize(("gang", "independent"), [
    (view(pod_set(), least=1, annotations={names.INDEPENDENT: "true"}), True),
    (view(least=0, annotations={names.INDEPENDENT: "true"}), True),
    (view(pod_set(), least=2, annotations={names.INDEPENDENT: "true"}), False),
    (view(pod_set(), pod_set("b"), least=1, annotations={names.INDEPENDENT: "true"}), False),
    (view(pod_set(), least=1, annotations={names.INDEPENDENT: "false"}), False),
])  # fmt: skip
def test_pods_that_are_together_in_name_only(gang: GangView, *, independent: bool) -> None:
    """As the PodGroup says, of one pod set that starts with one pod."""
    assert gang.independent is independent


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("said", ["true", "false"])
def test_only_a_native_group_says_that_its_pods_go_together(*, native: bool, said: str) -> None:
    """An annotation of another PodGroup is its owner's."""
    gang = view(annotations={names.INDIVISIBLE: said})
    gang.group.api_version = NATIVE_POD_GROUPS.api_version if native else ""
    assert gang.indivisible is (native and said == "true")


def test_what_it_is_called_and_which_pods_it_asks_for() -> None:
    """By its owner; each class once, also those of pods that are unlike."""
    assert [view(**owned("Job")).workload, view().workload] == ["Job train", "gang g"]
    one, other = record("w"), record("x", requests={"cpu": 7})
    sets = pod_set(waiting={0: one, 1: other}, mixed=True), pod_set("b")
    sets[0].cls = one.cls
    assert view(*sets).all_classes == [one.cls, None, other.cls]
    assert sets[0].classes_of([0, 1, 2]) == {one.cls: 2, other.cls: 1}
    sets[0].mixed = False
    assert view(*sets).all_classes == [one.cls, None]
    assert (sets[0].classes_of([0, 1]), sets[1].classes_of([0])) == ({one.cls: 2}, {})
    done, runs = record(node="n", phase="Succeeded"), record("r", node="n")
    assert view(pods=(done, runs), restarts=True).does_again == [done]
    assert view(pods=(done, runs)).does_again == []


def test_its_life_begins_when_it_was_whole_or_its_first_pod_was_bound() -> None:
    """Pods that have ended do not count."""
    told = {"phase": "Bound", "startedAt": "2027-01-15T08:00:00Z"}

    def bound(at: str, **more: Any) -> PodRecord:
        condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": at}
        pod = a_pod("b", node="n", status={"phase": "Running", "conditions": [condition], **more})
        return record_of(pod, CLASSES.of_pod(pod), "")

    pods = bound("2027-01-15T08:00:07Z"), bound("2027-01-15T08:00:05Z"), bound("2027-01-15T08:00:01Z", phase="Failed")
    assert (view(pods=pods, placement=told).started_s, view(pods=pods).started_s) == (NOW, NOW + 5)
    assert view(pods=(record(),)).started_s is None

"""Forecasts of starts from objects: reservations, declared and past run times, and what stays unknown."""

import msgspec
import pytest
from builders import pod as a_pod
from builders import pod_group

from gangs.forecast import ForecastCluster, unknown_text, with_starts
from gangs.row import GangRow
from gangs.rows import RowSources, rows
from muster.api.kubernetes.core import Node, Pod
from muster.api.kubernetes.meta import OwnerReference, format_time
from muster.api.muster.placement import Placement
from muster.api.volcano.batch import Job
from muster.api.volcano.scheduling import NO_ROOM, PodGroup

NOW = 1_780_000_000.0
RUNTIME = "muster.dev/expected-runtime"


def node(name: str) -> Node:
    """A node of eight GPUs."""
    status = {"allocatable": {"nvidia.com/gpu": 8, "pods": 110}, "conditions": [{"type": "Ready", "status": "True"}]}
    return msgspec.convert({"metadata": {"name": name}, "status": status}, Node)


def group(name: str, reason: str = "", pods: int = 1, runtime: str = "") -> PodGroup:
    """A PodGroup, which waits if there is a reason."""
    annotations = {RUNTIME: runtime} if runtime else {}
    condition = {"type": "Unschedulable", "status": "True", "reason": reason, "message": "it lacks room"}
    phase, status = ("Inqueue", {"conditions": [condition]}) if reason else ("Running", {})
    return pod_group(name, pods, queue="q", annotations=annotations, phase=phase, status=status)


def pod(gang: str, node: str = "", gpus: int = 8, age_s: float = 100.0) -> Pod:
    """A pod of a gang; one on a node has run for some time."""
    status = {"startTime": format_time(NOW - age_s)} if node else {}
    return a_pod(f"{gang}-0", node=node, gang=gang, limits={"nvidia.com/gpu": gpus}, status=status)


def ended(number: int, run_s: float) -> Job:
    """A Job of the queue that has ended after this time."""
    conditions = [
        {"status": "Running", "lastTransitionTime": format_time(NOW - 1e6)},
        {"status": "Completed", "lastTransitionTime": format_time(NOW - 1e6 + run_s)},
    ]
    status = {"state": {"phase": "Completed"}, "conditions": conditions}
    meta = {"name": f"ended-{number}", "namespace": "ns", "uid": f"u{number}"}
    return msgspec.convert({"metadata": meta, "spec": {"queue": "q"}, "status": status}, Job)


def forecast(objects: RowSources, *, seen: bool = True) -> dict[str, GangRow]:
    """The gangs that wait, by name."""
    cluster = ForecastCluster(objects, [node("n0")]) if seen else None
    return {row.name: row for row in with_starts(rows(objects), cluster, NOW)}


def test_a_declared_run_time() -> None:
    """The start is when the gang in the way is expected to end; those that run are not in the list."""
    groups = [group("now", runtime="10m"), group("next", NO_ROOM)]
    found = forecast(RowSources(groups=groups, pods=[pod("now", "n0"), pod("next")]))
    assert list(found) == ["next"]
    assert found["next"].earliest_start == found["next"].latest_start == format_time(NOW + 500)
    assert found["next"].start_known_by == "declared run times"


def test_past_run_times() -> None:
    """Of the queue's Jobs that ran longer than this one has."""
    jobs = [ended(number, 10.0 * number) for number in range(1, 101)]
    objects = RowSources(groups=[group("now"), group("next", NO_ROOM)], pods=[pod("now", "n0"), pod("next")], jobs=jobs)
    found = forecast(objects)["next"]
    assert format_time(NOW) < found.earliest_start < format_time(NOW + 300)
    assert format_time(NOW + 600) < found.latest_start <= format_time(NOW + 900)
    assert found.start_known_by == "past run times"


def test_pods_that_do_not_exist_yet() -> None:
    """A Volcano Job's templates say what they need; more pods than a gang may have are not counted."""
    container = {"resources": {"limits": {"nvidia.com/gpu": 8}}}
    task = {"name": "w", "replicas": 2**31 - 1, "template": {"spec": {"containers": [container]}}}
    meta = {"name": "next", "namespace": "ns", "uid": "j"}
    job = msgspec.convert({"metadata": meta, "spec": {"queue": "q", "tasks": [task]}}, Job)
    reference = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "name": "next",
        "uid": "j",
        "controller": True,
    }
    for pods, known in ((1, "declared run times"), (2**31 - 1, "")):
        waits = group("next-j", NO_ROOM, pods=pods)
        waits.metadata.owner_references.append(msgspec.convert(reference, OwnerReference))
        objects = RowSources(groups=[group("now", runtime="10m"), waits], pods=[pod("now", "n0")], jobs=[job])
        assert forecast(objects)["next"].start_known_by == known


def test_a_reservation() -> None:
    """The planner's own time counts, also for those who do not see the cluster."""
    at = format_time(NOW + 77)
    placement = msgspec.convert(
        {"metadata": {"name": "next", "namespace": "ns"}, "status": {"phase": "Reserved", "expectedAt": at}}, Placement
    )
    objects = RowSources(groups=[group("next", NO_ROOM)], pods=[pod("next")], placements=[placement])
    for seen in (True, False):
        found = forecast(objects, seen=seen)["next"]
        assert (found.earliest_start, found.latest_start, found.start_known_by) == (at, at, "reservation")


def test_what_is_not_known() -> None:
    """Nothing declared and nothing learned; no rights; a gang that waits for something else than room."""
    groups = [group("now", runtime="10m"), group("next", "QueueOverCapability")]
    pods = [pod("now", "n0"), pod("next")]
    assert forecast(RowSources(groups=groups, pods=pods))["next"].start_known_by == ""
    groups = [group("now"), group("next", NO_ROOM)]
    assert forecast(RowSources(groups=groups, pods=pods))["next"].earliest_start == ""
    groups = [group("now", runtime="10m"), group("next", NO_ROOM)]
    assert forecast(RowSources(groups=groups, pods=pods), seen=False)["next"].earliest_start == ""


@pytest.mark.parametrize(("ready", "cordoned"), [("False", False), ("True", True)])
def test_a_node_that_takes_no_pods_is_no_room(ready: str, *, cordoned: bool) -> None:
    """A gang that waits beside a free one of these waits for another."""
    groups = [group("now", runtime="10m"), group("next", NO_ROOM)]
    objects = RowSources(groups=groups, pods=[pod("now", "n0"), pod("next")])
    free = node("n1")
    found = with_starts(rows(objects), ForecastCluster(objects, [node("n0"), free]), NOW)
    assert [row.start_known_by for row in found] == [""]  # it fits now: the planner knows why it waits
    free.status.conditions[0].status = ready
    free.spec.unschedulable = cordoned
    found = with_starts(rows(objects), ForecastCluster(objects, [node("n0"), free]), NOW)
    assert [row.earliest_start for row in found] == [format_time(NOW + 500)]


def test_turns_are_those_of_priority_and_age() -> None:
    """The higher priority first, then the older gang."""
    names = {"low": (0, 10), "new": (7, 30), "old": (7, 20)}
    groups, pods = [group("now", runtime="10m")], [pod("now", "n0")]
    for name, (priority, second) in names.items():
        groups.append(group(name, NO_ROOM, runtime="10m"))
        groups[-1].metadata.creation_timestamp = f"2026-05-28T20:26:{second}Z"
        pods.append(pod(name))
        pods[-1].spec.priority, pods[-1].spec.priority_class_name = priority, f"p{priority}"
        groups[-1].spec.priority_class_name = f"p{priority}"
    found = forecast(RowSources(groups=groups, pods=pods))
    assert {name: row.earliest_start for name, row in found.items()} == {
        name: format_time(NOW + 500 + 600 * turn) for turn, name in enumerate(("old", "new", "low"))
    }


def test_a_gang_has_run_since_it_was_whole() -> None:
    """As its placement says, else since its first pod began; the longest of its declared run times counts."""
    groups = [group("now", runtime="10m"), group("next", NO_ROOM)]
    status = {"phase": "Bound", "started": True, "startedAt": format_time(NOW - 50)}
    meta = {"name": "now", "namespace": "ns"}
    spec = {"podGroupUID": groups[0].metadata.uid}
    placed = msgspec.convert({"metadata": meta, "spec": spec, "status": status}, Placement)
    half = [a_pod(f"now-{number}", node="n0", gang="now", limits={"nvidia.com/gpu": 4}) for number in range(2)]
    for each, age_s in zip(half, (100, 300), strict=True):
        each.status.start_time = format_time(NOW - age_s)
    objects = RowSources(groups=groups, pods=[*half, pod("next")])
    assert forecast(objects)["next"].earliest_start == format_time(NOW + 300)
    objects.placements = [placed]
    assert forecast(objects)["next"].earliest_start == format_time(NOW + 550)
    half[1].metadata.annotations[RUNTIME] = "20m"
    assert forecast(objects)["next"].earliest_start == format_time(NOW + 1150)
    groups[0].metadata.annotations.clear()
    assert forecast(objects)["next"].start_known_by == ""


@pytest.mark.parametrize(("groups", "words"), [
    ([group("now"), group("next", NO_ROOM)], "PodGroup now runs without an expected run time; muster.dev/"),
    ([group("now"), group("next", "QueueFull")], "none of these gangs waits for capacity that others use: see REASON"),
    ([group("now", runtime="10m"), group("next", NO_ROOM, pods=9)], "the gangs that run now free too little"),
    ([group("now", runtime="10m"), group("next", NO_ROOM)], ""),
    ([group("now")], ""),
])  # fmt: skip
def test_what_would_make_starts_known(groups: list[PodGroup], words: str) -> None:
    """Said only if no start is known."""
    objects = RowSources(groups=groups, pods=[pod("now", "n0"), pod("next")])
    cluster = ForecastCluster(objects, [node("n0")])
    text = unknown_text(with_starts(rows(objects), cluster, NOW), cluster)
    assert words in text
    assert bool(words) == bool(text)

"""Kubelet's reasons: which of them are trouble, and how they are told."""

from typing import Any

import msgspec
import pytest

from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.pod_problems import failure, first_failure, problem, refused, sentence


def pod(name: str = "a-w-0", **status: Any) -> Pod:
    """A pod on node-1 with this status."""
    return msgspec.convert({"metadata": {"name": name}, "spec": {"nodeName": "node-1"}, "status": status}, Pod)


def waits(reason: str, message: str = "", **more: Any) -> dict[str, Any]:
    """A container that waits."""
    return {"name": "main", "state": {"waiting": {"reason": reason, "message": message}}, **more}


def ended(code: int, reason: str = "", at: str | None = None) -> dict[str, Any]:
    """A container that has ended."""
    return {"name": "main", "state": {"terminated": {"exitCode": code, "reason": reason, "finishedAt": at}}}


WAITING = {
    "ErrImageNeverPull": 'Container image "trainer:1" is not present with pull policy of Never',
    "CreateContainerConfigError": 'secret "keys" not found',
    "CrashLoopBackOff": "back-off 20s restarting failed container",
    "PostStartHookError": "",
}
REFUSED = {
    "OutOfnvidia.com/gpu": "Node didn't have enough resource: nvidia.com/gpu",
    "NodeAffinity": "Predicate NodeAffinity failed",
    "UnexpectedAdmissionError": "Allocate failed due to requested number of devices unavailable",
    "Evicted": "The node had condition: [DiskPressure].",
}


@pytest.mark.parametrize("init", [False, True])
@pytest.mark.parametrize("reason", WAITING)
def test_a_container_that_waits_is_trouble(reason: str, *, init: bool) -> None:
    """Of init containers, too."""
    one = pod(
        phase="Pending", **{"initContainerStatuses" if init else "containerStatuses": [waits(reason, WAITING[reason])]}
    )
    found = problem(one)
    assert found is not None
    assert (found.reason, found.container, found.brief) == (reason, "main", f"container main: {reason}")
    assert found.words == f"container main: {reason}" + (f": {WAITING[reason]}" if WAITING[reason] else "")
    assert not refused(one)


def test_a_container_that_crashes_again_and_again() -> None:
    """With the number of its restarts."""
    found = problem(pod(phase="Running", containerStatuses=[waits("CrashLoopBackOff", "back-off 20s", restartCount=3)]))
    assert found is not None
    assert found.words == "container main: CrashLoopBackOff: restarted 3 times; back-off 20s"


@pytest.mark.parametrize("reason", REFUSED)
def test_a_pod_that_kubelet_refuses_is_trouble(reason: str) -> None:
    """It has no container statuses, or in later versions some that still wait."""
    for statuses in ([], [waits("ContainerCreating")]):
        one = pod(phase="Failed", reason=reason, message=REFUSED[reason], containerStatuses=statuses)
        found = problem(one)
        assert found is not None
        assert found.words == f"{reason}: {REFUSED[reason]}"
        assert refused(one)


@pytest.mark.parametrize("status", [
    {"phase": "Pending"},
    {"phase": "Pending", "containerStatuses": [waits("ContainerCreating")]},
    {"phase": "Pending", "containerStatuses": [waits("PodInitializing")]},
    {"phase": "Running", "containerStatuses": [{"name": "main", "state": {"running": {}}}]},
    {"phase": "Failed", "containerStatuses": [ended(1)]},
    {"phase": "Succeeded", "containerStatuses": [ended(0)]},
])  # fmt: skip
def test_a_pod_that_starts_runs_or_ends_by_itself_is_none(status: dict[str, Any]) -> None:
    """Its exit code is the user's to judge."""
    assert problem(pod(**status)) is None
    assert not refused(pod(**status))


def test_a_pod_that_ran_before_it_was_evicted_was_not_refused() -> None:
    """Why it went is told all the same."""
    one = pod(phase="Failed", reason="Evicted", message="The node was low on memory.", containerStatuses=[ended(137)])
    assert problem(one) is not None
    assert not refused(one)


def test_a_pod_that_is_being_deleted_has_no_trouble() -> None:
    """Its problems do not matter any more."""
    one = pod(phase="Pending", containerStatuses=[waits("ErrImagePull")])
    one.metadata.deletion_timestamp = "2026-01-01T00:00:00Z"
    assert problem(one) is None


def test_of_many_pods_the_first_is_told() -> None:
    """By name, whatever order they come in; messages become one line."""
    bad = [pod(name, phase="Pending", containerStatuses=[waits("ErrImagePull", "not\n found")]) for name in "ba"]
    told = "pod a on node-1: container main: ErrImagePull: not found (and 1 more)"
    assert sentence([*bad, pod(phase="Running")]) == ("ErrImagePull", told)
    assert sentence([pod(phase="Running")]) is None


EVICTION = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "message": "Eviction API"}


@pytest.mark.parametrize(("status", "words"), [
    ({"containerStatuses": [ended(1, "Error")]}, "container main: exit code 1"),
    ({"containerStatuses": [ended(137, "OOMKilled")]}, "container main: exit code 137 (OOMKilled)"),
    ({"containerStatuses": [ended(139, "Error")]}, "container main: exit code 139 (SIGSEGV)"),
    ({"containerStatuses": [ended(0), ended(2)]}, "container main: exit code 2"),
    ({"containerStatuses": [ended(143)], "conditions": [EVICTION]}, "EvictionByEvictionAPI: Eviction API"),
    ({"containerStatuses": [ended(143)], "reason": "Evicted", "message": "low on memory"}, "Evicted: low on memory"),
], ids=["code", "memory", "signal", "the first that failed", "evicted", "kubelet's reason"])  # fmt: skip
def test_how_a_pod_failed(status: dict[str, Any], words: str) -> None:
    """The pod's own reason, else its eviction, else the exit code, with a reason that is more specific than "Error"."""
    found = failure(pod(phase="Failed", **status))
    assert found is not None
    assert found.words == words
    assert failure(pod(phase="Running", **status)) is None


def test_the_pod_that_failed_first_is_named() -> None:
    """By the time of its end, whatever its name: the others often fail because of it."""
    ends = {"a": "2026-11-21T05:38:40Z", "b": "2026-11-21T05:38:34Z", "c": "2026-11-21T05:38:40Z"}
    pods = [pod(name, phase="Failed", containerStatuses=[ended(1, at=at)]) for name, at in ends.items()]
    never = pod("0", phase="Failed", reason="OutOfcpu")
    found = first_failure([never, *pods, pod("z", phase="Succeeded", containerStatuses=[ended(0)])])
    assert found is not None
    assert found[0].metadata.name == "b"
    assert found[1:] == (
        "pod b: container main: exit code 1",
        "pod b on node-1 failed: container main: exit code 1 (and 3 more)",
    )
    assert first_failure([pod(phase="Running")]) is None


def test_of_failures_in_one_second_the_lowest_rank_is_the_first() -> None:
    """By its number, not by its digits."""
    found = first_failure(pod(f"w-{rank}-x9", phase="Failed", containerStatuses=[ended(1, at="t")]) for rank in (10, 2))
    assert found is not None
    assert found[0].metadata.name == "w-2-x9"

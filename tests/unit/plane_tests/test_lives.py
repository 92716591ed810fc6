"""The measure of the storms: what counts as a start, as half placed, as an eviction in vain, as late."""

from collections.abc import Sequence
from itertools import count
from typing import Any

import pytest
from lives import Seen, Story, told

from muster.api.kubernetes.core import Pod, PodSpec, PodStatus
from muster.api.kubernetes.meta import ObjectMeta, ReportedCondition, format_time
from muster.api.muster.placement import NodeRun, Placement, PlacementSpec, PlacementStatus, PodSetPlacement, Victim
from muster.api.volcano.scheduling import PodGroup, PodGroupSpec

NOW = 1_800_000_000


class Log:
    """Changes one after the other, a second apart."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self._versions = count(1)

    def _add(self, item: Any, *, gone: bool = False) -> None:
        version = next(self._versions)
        self.seen.append(Seen(version, NOW + float(version), item, gone=gone))

    def group(self, uid: str, minimum: int = 2) -> None:
        """A PodGroup of the Job `a`, each UID another life of it."""
        spec = PodGroupSpec(min_member=minimum, queue="q")
        self._add(PodGroup(metadata=ObjectMeta(name="a", uid=uid), spec=spec))

    def pod(
        self, uid: str, rank: int, node: str = "", phase: str = "Running", *, evicted: bool = False, version: int = 0
    ) -> None:
        """A member of `a`, of this version of its Job."""
        notes = {"scheduling.k8s.io/group-name": "a", "volcano.sh/task-spec": "w", "volcano.sh/task-index": str(rank)}
        notes["volcano.sh/job-version"] = str(version)
        conditions = [ReportedCondition(type="DisruptionTarget", status="True")] if evicted else []
        meta = ObjectMeta(name=f"a-w-{rank}", uid=uid, annotations=notes)
        status = PodStatus(phase=phase, conditions=conditions)
        self._add(Pod(metadata=meta, spec=PodSpec(node_name=node), status=status))

    def gone(self, uid: str, rank: int) -> None:
        """The member is no more."""
        self.pod(uid, rank)
        self.seen[-1] = Seen(self.seen[-1].version, self.seen[-1].moment, self.seen[-1].item, gone=True)

    def asks(self, uid: str, victim: str) -> None:
        """A placement of `a` for which a pod of another gang goes, which it does."""
        self._placement(uid, PlacementStatus(), [Victim(name="v", uid=victim, gang="b")])
        self.pod(victim, 0, evicted=True)
        self.seen[-1].item.metadata.annotations.clear()

    def promises(self, uid: str, in_s: float) -> None:
        """A reservation of `a` on the node `kept`, so many seconds from the last change."""
        at = format_time(self.seen[-1].moment + in_s)
        kept = [PodSetPlacement(name="w", runs=[NodeRun(node="kept", count=2)])]
        self._placement(uid, PlacementStatus(phase="Reserved", expected_at=at), [], kept)

    def _placement(
        self, uid: str, status: PlacementStatus, victims: list[Victim], pod_sets: Sequence[PodSetPlacement] = ()
    ) -> None:
        spec = PlacementSpec(pod_group_uid=uid, victims=victims, pod_sets=list(pod_sets))
        self._add(Placement(metadata=ObjectMeta(name="a"), spec=spec, status=status))

    def story(self) -> Story:
        """Until a second after the last change, told in whatever order watches are."""
        return told(reversed(self.seen), self.seen[-1].moment + 1)


def test_an_eviction_is_in_vain_unless_the_gang_starts_after_it_in_the_same_life() -> None:
    """A start before it does not count, and one of the PodGroup that comes after a restart neither."""
    log = Log()
    log.group("one")
    for rank in range(2):
        log.pod(f"old-{rank}", rank, "node")
    for rank in range(2):
        log.gone(f"old-{rank}", rank)
    log.asks("one", "victim")
    log.pod("new-0", 0, "node")
    assert log.story().in_vain() == {"a": 1}
    whole = Log()
    whole.seen, whole._versions = list(log.seen), count(100)
    whole.pod("new-1", 1, "node")
    assert whole.story().in_vain() == {}
    log.group("two")
    for rank in range(2):
        log.pod(f"later-{rank}", rank, "node")
    assert log.story().in_vain() == {"a": 1}


def test_only_a_gang_that_holds_nodes_is_half_placed_and_those_who_are_done_count() -> None:
    """One of two has a node for three seconds; later one is done and the other is made anew, which holds nothing."""
    log = Log()
    log.group("one")
    log.pod("a-0", 0, "node")
    log.pod("a-1", 1)
    log.pod("a-1", 1)
    log.pod("a-1", 1, "node")
    assert log.story().half_placed() == (3.0, "a")
    log.pod("a-0", 0, "node", "Succeeded")
    log.gone("a-1", 1)
    for _ in range(9):
        log.pod("again-1", 1)
    assert log.story().half_placed() == (3.0, "a")
    assert log.story().run_again == []
    log.gone("a-0", 0)
    log.pod("again-0", 0)
    assert len(log.story().run_again) == 1


def test_a_pod_of_a_job_that_was_restarted_is_not_run_again_although_its_pod_group_is_told_later() -> None:
    """A watch that had to list again tells of the new PodGroup with the version of its last change."""
    log = Log()
    log.group("one", minimum=1)
    log.pod("a-0", 0, "node", "Succeeded")
    log.gone("a-0", 0)
    log.pod("again-0", 0, version=1)
    log.group("two", minimum=1)
    assert log.story().run_again == []
    log.pod("more-0", 0, "node", "Succeeded")
    log.pod("less-0", 0)
    assert len(log.story().run_again) == 1


def test_a_gang_that_is_half_placed_in_the_end_counts_until_then() -> None:
    """Nobody waits for it to become whole."""
    log = Log()
    log.group("one", minimum=3)
    log.pod("a-0", 0, "node")
    assert log.story().half_placed() == (1.0, "a")


@pytest.mark.parametrize(("in_s", "late_s"), [(1.0, 3.0), (10.0, -6.0)])
def test_a_queue_is_late_from_the_earliest_promise_until_a_gang_of_it_starts(in_s: float, late_s: float) -> None:
    """A later promise does not take an earlier one back."""
    log = Log()
    log.group("one")
    log.promises("one", in_s)
    log.promises("one", in_s + 100)
    log.pod("a-0", 0, "node")
    log.pod("a-1", 1, "node")
    assert log.story().late == {"q": late_s}
    assert log.story().promises == 2


@pytest.mark.parametrize(("ends", "late_s"), [(1, 2.0), (0, 0.0)])
def test_a_queue_is_not_late_while_those_hold_its_nodes_who_held_them_before(ends: int, late_s: float) -> None:
    """They run longer than anybody knew; who takes such a node afterwards is no excuse."""
    log = Log()
    log.group("old", minimum=1)
    log.pod("old-0", 0, "kept")
    log.group("one")
    log.promises("one", 1.0)
    log.pod("later-0", 0, "kept")
    log.pod("old-0", 0, "kept", "Succeeded" if ends else "Running")
    log.pod("a-0", 0, "node")
    log.pod("a-1", 1, "node")
    assert log.story().late["q"] == late_s


def test_an_eviction_of_one_that_had_succeeded_is_counted() -> None:
    """It held no room, and its Job would make it anew."""
    log = Log()
    log.group("one")
    log.pod("a-0", 0, "node", "Succeeded")
    log.pod("a-0", 0, "node", "Succeeded", evicted=True)
    assert log.story().evicted_late == 1

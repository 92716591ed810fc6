"""Pods are told, and that they stay; Events on gangs; and how notices end is counted, each once."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from extender_world import NOW
from prometheus_client import REGISTRY
from victims_world import Cluster as VictimsWorld

from extender.cluster import Cluster
from extender.gangevents import GangEvents
from extender.notices import NoticeWriter
from extender.planner.framework.decisions import MakeRoom, TellNotice, WithdrawNotice
from extender.planner.framework.session import Session
from extender.writes import Writes
from muster.api import names
from muster.api.kubernetes.meta import format_time
from muster.api.muster.reason import reason_of
from muster.kube.errors import NotFound

UNTIL = format_time(NOW + 300)


class Api:
    """Remembers what was written; some pods are gone."""

    def __init__(self, gone: str = "") -> None:
        self.written: list[tuple[str, dict[str, Any]]] = []
        self.events: list[str] = []
        self._gone = gone

    def strategic_patch(self, _kind: Any, name: str, body: dict[str, Any], _namespace: str, **_: Any) -> None:
        """Of a pod's status."""
        if name == self._gone:
            raise NotFound("no such pod")
        self.written.append((name, body["status"]["conditions"][0]))

    def merge_patch(self, _kind: Any, name: str, body: dict[str, Any], _namespace: str) -> Any:
        """Of a pod's annotations."""
        self.written.append((name, body["metadata"]["annotations"]))
        return SimpleNamespace(metadata=SimpleNamespace(uid=""))

    def event(self, obj: Any, _kind: str, reason: str, message: str) -> None:
        """As the recorder."""
        self.events.append(f"{obj.metadata.name} {reason}: {message}")


class Writer:
    """A writer in a small world with a gang of two."""

    def __init__(self, api: Api) -> None:
        self.world = VictimsWorld(2)
        self.gang = self.world.view(self.world.runs("low", 2))
        cluster = Cluster(cast("Any", None), wake=lambda: None)
        cluster.state = cast("Any", SimpleNamespace(on_pod_written=lambda _: None))
        events = GangEvents(cast("Any", api), wall_s=lambda: NOW)
        self.writer = NoticeWriter(cast("Any", api), cluster, events, wall_s=lambda: NOW)

    def carry_out(self, *decided: Any) -> None:
        """Write these decisions, and wait for the answers."""
        session = cast(
            "Session",
            SimpleNamespace(decided=lambda kind: [each for each in decided if isinstance(each, kind)]),
        )
        writes = Writes(active=lambda: True, wake=lambda: None, wall_s=lambda: NOW)
        self.writer.write(session, writes)
        assert writes.settled(10)
        writes.stop()


def counted(outcome: str) -> float:
    """Notices that ended so."""
    return REGISTRY.get_sample_value("muster_eviction_notices_total", {"outcome": outcome}) or 0.0


def lost() -> float:
    """Work that evictions have lost, in seconds."""
    return REGISTRY.get_sample_value("muster_lost_work_seconds_total") or 0.0


def test_each_pod_is_told_and_the_workload_once() -> None:
    """The condition first: what is read again is the annotation."""
    api = Api()
    writer = Writer(api)
    why = "preempted by Job high of priority 10 in queue default"
    for pods in (writer.gang.pods, writer.gang.pods[1:]):  # in the next cycle one of them knows
        writer.carry_out(*(TellNotice(writer.gang, pod, UNTIL, "default", why, 2) for pod in pods))
    for name in ("low-worker-0", "low-worker-1"):
        condition, annotations = [body for pod, body in api.written if pod == name][:2]
        assert (condition["type"], condition["status"]) == ("muster.dev/EvictionNotice", "True")
        assert condition["message"] == f"1 pod is to be evicted at {UNTIL}, or as soon as the gang has answered: {why}"
        assert annotations == {names.EVICT_AT: UNTIL, names.EVICT_FOR: "default"}
    words = f"low EvictionNotice: 2 pods are to be evicted at {UNTIL}, or as soon as the gang has answered: {why}"
    assert api.events == [words, words], "on the PodGroup, and on the Job"


def test_who_stays_is_told_so_and_its_answer_is_forgotten() -> None:
    """Counted once for the gang; a pod that is gone is no trouble."""
    api = Api(gone="low-worker-1")
    writer = Writer(api)
    before = counted("withdrawn")
    for _ in range(2):
        writer.carry_out(*(WithdrawNotice(writer.gang, pod) for pod in writer.gang.pods))
    condition, annotations = [body for pod, body in api.written if pod == "low-worker-0"][:2]
    assert (condition["status"], condition["reason"]) == ("False", "Withdrawn")
    assert annotations == {names.EVICT_AT: None, names.EVICT_FOR: None, names.EVICT_READY: None}
    assert counted("withdrawn") == before + 1
    assert "low EvictionWithdrawn: its room is not needed any more: it stays" in api.events


@pytest.mark.parametrize("outcome", ["answered", "silent"])
def test_the_end_of_a_notice_is_counted_once_and_lost_work_for_each_pod(outcome: str) -> None:
    """Pods may go in several cycles."""
    writer = Writer(Api())
    gang, before, work = writer.gang, counted(outcome), lost()
    room = MakeRoom(gang, 1, (), reason_of("why"), outcomes={gang.key: outcome}, unsaved_s={gang.key: 60.0})
    writer.writer.ended(room, gang.uid, gang.key, 1)
    writer.writer.ended(room, gang.uid, gang.key, 1)
    assert (counted(outcome) - before, lost() - work) == (1, 120.0)

"""Writer of a planning cycle's decisions, in order; `extender.placements` writes the decisions about placements.

A placement is written before any other write that depends on it. A PodGroup becomes Inqueue only after its placement
exists, so that its pods can be pinned when they are created. Each write that the API server confirms is applied to the
local state at once. A failed write is logged, and a later cycle makes the decision again.
"""

from collections.abc import Callable, Mapping
from functools import partial

import msgspec

from extender.barrier import Barrier
from extender.cluster import Live
from extender.clusterstatus import HyperNodeStatusWriter, QueueStatusWriter
from extender.evictions import EvictionWriter
from extender.gangevents import GangEvents
from extender.groupstatus import PodGroupStatusWriter
from extender.notes import NoteWriter
from extender.notices import NoticeWriter
from extender.placements import PlacementWriter, moves
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.scaleup.requests import consumption
from extender.planner.state.pods import PodRecord
from extender.positionwriter import QueuePositionWriter
from extender.repairs import Repairs
from extender.scaling import Scaling
from extender.writes import Lane, WriteContext, Writes
from muster.api import names
from muster.api.kubernetes.core import PODS
from muster.api.muster.gang import DEFAULT_POD_SET, pinned_affinity
from muster.kube.client import Client
from muster.kube.events import EventWriter


class Committer:
    """Writer of placements, statuses, gate removals and evictions; writes only while this replica leads (`active`)."""

    def __init__(
        self,
        client: Client,
        cluster: Live,
        barrier: Barrier,
        recorder: EventWriter,
        *,
        active: Callable[[], bool],
        wall_s: Callable[[], float],
        monotonic_s: Callable[[], float] | None = None,
    ) -> None:
        """Create the writers; a simulation may omit `monotonic_s`, because simulated time never jumps back."""
        monotonic_s = monotonic_s or wall_s
        self._client = client
        self._cluster = cluster
        self.writes = Writes(active=active, wake=partial(cluster.wake, None), monotonic_s=monotonic_s)
        events = GangEvents(recorder, monotonic_s=monotonic_s)
        context = WriteContext(client, cluster, self.writes, events, wall_s, monotonic_s)
        self._statuses = PodGroupStatusWriter(context)
        self._positions = QueuePositionWriter(context)
        self._queues = QueueStatusWriter(context)
        self._hyper_nodes = HyperNodeStatusWriter(context)
        self.publish: Callable[[Session], None] = lambda _: None
        """Function that is called at the end of a cycle to publish the planner's inputs."""
        self.keep_failures: Callable[[], None] = lambda: None
        """Function that is called when a gang begins to avoid nodes on which members of the gang failed."""
        self.recall_failures: Callable[[], None] = lambda: None
        """Function that is called when this replica begins to lead."""
        self.scaling = Scaling(context)
        self._placements = PlacementWriter(context, barrier, NoteWriter(context, self._statuses))
        self.mark_binding = self._placements.mark_binding
        self._notices = NoticeWriter(context)
        self._evictions = EvictionWriter(context, self._notices, self._placements.close)
        self.repairs = Repairs(context, self._notices)

    def carry_out(self, session: Session) -> None:
        """Write all decisions of this cycle; wait until all placements and evictions are confirmed or refused."""
        writes, placements, decided = self.writes, self._placements, session.decided
        writes.all("placement", partial(placements.close, session), placements.due(session))
        avoids = decided(decisions.Avoid)
        writes.all("placement", placements.avoid, avoids)
        if any(avoid.avoided for avoid in avoids):
            self.keep_failures()
        # first, because gangs that are placed next may need the released capacity and quota
        writes.all("placement", placements.keep_spares, decided(decisions.KeepSpares))
        places = decided(decisions.Place)
        for moved in (True, False):  # placements of moved gangs are written before any pod is evicted
            due = [place for place in places if moves(place) is moved]
            writes.all("placement", partial(placements.place, session), due)
        writes.all("placement", placements.room_is_there, decided(decisions.RoomIsThere))
        writes.all("placement", placements.unreserve, decided(decisions.Unreserve))
        writes.all("placement", placements.reserve, decided(decisions.Reserve))
        self._statuses.write(session)
        for release in decided(decisions.Release):
            request = session.inputs.provisioning.get(release.gang.uid)
            lift = partial(self._release, release.pod, release.node, release.epoch, consumption(request))
            writes.start(Lane.PODS, "release", release.pod.uid, lift, namespace=release.pod.namespace)
        self._evictions.delete_all(session)
        self.repairs.carry_out(session)
        self._evictions.make_room(session)
        self._notices.write(session)
        self._positions.write(session)
        self._queues.write(session)
        self._scale(session)
        self._hyper_nodes.write(session)
        self.publish(session)

    def _scale(self, session: Session) -> None:
        writes, scaling, decided = self.writes, self.scaling, session.decided
        scaling.follow(session)
        writes.all("provisioning-request", scaling.withdraw, decided(decisions.WithdrawRequest))
        writes.all("provisioning-request", scaling.request, decided(decisions.RequestNodes))
        for decision in decided(decisions.AnnotateEviction):
            self._write_pod("annotation", decision.pod, partial(scaling.report_eviction, decision))
        for condition in decided(decisions.SetCondition):
            self._write_pod("condition", condition.pod, partial(scaling.report, condition))

    def _write_pod(self, what: str, pod: PodRecord, write: Callable[[], None]) -> None:
        """Start a write of a message into a pod."""
        self.writes.start(Lane.WORDS, what, pod.uid, write, namespace=pod.namespace)

    def _release(self, pod: PodRecord, node: str, epoch: int, consumed: Mapping[str, str]) -> None:
        """Pin a pod to its node and remove its gate; `consumed` has annotations about a ProvisioningRequest."""
        annotations = {names.EPOCH: str(epoch), **consumed}
        if pod.slot and (pod.slot.pod_set == DEFAULT_POD_SET or pod.task):
            annotations[names.MEMBER_INDEX] = str(pod.slot.rank)
        body: dict[str, object] = {"metadata": {"uid": pod.uid, "annotations": annotations}}
        if pod.gated:
            annotations[names.NODE] = node
            affinity = pinned_affinity(msgspec.to_builtins(pod.cls.affinity) or None, node)
            body["spec"] = {
                "schedulingGates": [{"name": gate} for gate in pod.other_gates],
                "affinity": {"nodeAffinity": affinity["nodeAffinity"]},
            }
        new = self._client.merge_patch(PODS, pod.name, body, pod.namespace)
        self._cluster.ask(lambda state: state.on_pod_written(new))

    def stop(self) -> None:
        """Stop the writers; the planner of the next leader decides again about writes that were not sent."""
        self.writes.stop()

"""Writer of Placement objects; no other module creates, changes or closes these objects.

The placement of a plain gang of one pod is not an object but an annotation of the PodGroup, which `extender.notes`
writes. `notes.fits` decides which placements are annotations.

`extender.placementcontent` computes the content of placements.

A write that the API server has confirmed is applied to the local state at once. Every change names the version of the
placement that was read, so the API server rejects stale changes.
"""

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from contextlib import suppress
from functools import reduce
from types import MappingProxyType
from typing import Any

import msgspec
import structlog
from msgspec.structs import replace

from extender import placementcontent as content
from extender.barrier import Barrier
from extender.notes import NoteWriter, fits
from extender.planner.dynamic.needs import SharedClaim
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView
from extender.planner.state.podclass import PodClass
from extender.planner.state.state import PlannerState
from extender.planner.timing import arrival_s
from extender.writes import Lane, WriteContext, Writer
from muster.api.merge_diff import difference
from muster.api.muster.native import reference
from muster.api.muster.noderuns import ranks_of
from muster.api.muster.placement import PLACEMENTS, Placement
from muster.api.muster.placementnotes import PlacementContent, is_noted
from muster.api.muster.pools import labels_of
from muster.api.volcano.scheduling import PodGroup
from muster.kube.errors import APIError, NotFound
from muster.resources.vector import Vector, add, scale, subtract

log = structlog.get_logger()


class PlacementWriter(Writer):
    """Writer of decisions about placements, as Placement objects or, through `extender.notes`, as annotations."""

    def __init__(self, context: WriteContext, barrier: Barrier, notes: NoteWriter) -> None:
        super().__init__(context)
        self._barrier = barrier
        self._notes = notes

    def place(self, session: Session, place: decisions.Place) -> None:
        """Write the gang's nodes with the next epoch and a deadline, unless the gang's queue has become full meanwhile.

        During a planning cycle, pods without a gang may be bound and fill up the queue. Both the bind verb and the
        placement writer first open an entry in the ledger, so that only one of them gets the last capacity of a queue.
        """
        gang = place.gang
        now = self._wall_s()
        if not self._cluster.ask(
            lambda state: _assume(state, place, new_requests(place, state.ledger.device_users), now)
        ):
            log.info("not placed, because its queue is full now", gang=gang.key, queue=gang.queue)
            return
        try:
            self._place(session, place)
        finally:
            self._cluster.ask(lambda state: state.ledger.answered(gang.key))

    def _place(self, session: Session, place: decisions.Place) -> None:
        gang = place.gang
        begins = max(self._wall_s(), place.waits_until)
        deadline_s = begins + arrival_s(session.snapshot.placed_slots + place.new_slots)
        known, remembered = self._known(gang), session.snapshot.remembered.get(gang.key, ())
        before = content.of_gang(known, gang)
        wanted = content.placed(place, before, deadline_s=deadline_s, remembered=remembered)
        if fits(place, known):
            self._notes.write(session, gang, wanted, placed=True)
        else:
            self._write(gang, known, wanted)
        log.info("placed", gang=gang.key, epoch=place.epoch, slots=place.new_slots)
        others = sum(victim is not gang for victim, _ in place.victims)
        self._events.planned(gang, place.pod_sets, place.epoch, victims=others)
        if place.borrows:
            self._events.borrows(gang, list(dict.fromkeys(loan.node for loan in place.borrows)), place.epoch)

    def reserve(self, reserve: decisions.Reserve) -> None:
        """Write the reserved nodes of a waiting gang; record an Event if the reservation is new."""
        gang = reserve.gang
        new = gang.placement is None or gang.placement.status.phase != "Reserved"
        known = self._known(gang)
        self._write(gang, known, content.reserved(reserve, content.of_gang(known, gang)))
        if new:
            log.info("reserved", gang=gang.key, expected_at=reserve.expected_at, why=reserve.message)
            self._events.reserved(gang, reserve.message)

    def unreserve(self, unreserve: decisions.Unreserve) -> None:
        """Remove a gang's reserved nodes."""
        placement = unreserve.gang.placement
        if placement is not None and placement.status.phase == "Reserved":
            self._patch(placement, content.unreserved(unreserve, placement))
            log.info("no longer reserved", gang=unreserve.gang.key, why=unreserve.message)

    def _known(self, gang: GangView) -> Placement | None:
        """Return the placement with the gang's name, even if it belongs to an earlier PodGroup."""
        return self._cluster.ask(lambda state: state.placements.get(gang.key))

    def _write(self, gang: GangView, known: Placement | None, wanted: PlacementContent) -> None:
        """Create or patch the gang's placement; first delete an earlier PodGroup's placement of the same name."""
        namespace, name = gang.group.metadata.namespace, gang.group.metadata.name
        if known is not None and known.spec.pod_group_uid != gang.uid:
            if not is_noted(known):
                with suppress(NotFound):
                    self._client.delete(PLACEMENTS, name, namespace, uid=known.metadata.uid)
            self._saw(known, None)
            known = None
        if known is None:
            self._saw(None, self._create(gang.group, wanted))
        else:
            self._patch(known, wanted)

    def _create(self, group: PodGroup, wanted: PlacementContent) -> Placement:
        owners = [msgspec.to_builtins(replace(reference(group), controller=True, block_owner_deletion=True))]
        meta = group.metadata
        metadata: dict[str, Any] = {"name": meta.name, "namespace": meta.namespace, "ownerReferences": owners}
        if labels := labels_of(self._cluster.state.pool):
            metadata["labels"] = labels
        body = {"apiVersion": PLACEMENTS.api_version, "kind": PLACEMENTS.kind, "metadata": metadata}
        return self._client.create(PLACEMENTS, {**body, **wanted.as_json()}, meta.namespace)

    def due(self, session: Session) -> list[decisions.ClosePlacement]:
        """Return the ends of placements that must be written now."""
        return [close for close in session.decided(decisions.ClosePlacement) if self._notes.is_due(close)]

    def close(self, session: Session, close: decisions.ClosePlacement) -> None:
        """Write the end of a placement; if the placement is abandoned, cancel the bind calls of its members."""
        placement = close.gang.placement
        if placement is None:
            return
        if close.phase == "Abandoned":
            self._cluster.ask(lambda _: self._barrier.cancel(close.gang.uid))
            log.info("placement abandoned", gang=close.gang.key, epoch=placement.spec.epoch, reason=close.message)
            self._events.abandoned(close.gang, close.message)
        elif close.pod_sets is not None:
            log.info("placement cut short", gang=close.gang.key, epoch=placement.spec.epoch, reason=close.message)
        avoided = session.avoided.get(close.gang.key, ())
        wanted = content.closed(close, now=session.now, avoided=avoided)
        if is_noted(placement) and close.phase == "Bound" and not close.pod_sets and not close.evicted_in_vain:
            self._notes.write(session, close.gang, wanted, placed=False)
        else:
            self._patch(placement, wanted)
        if close.phase == "Bound" and close.gang.active and close.pod_sets is None:
            self._events.bound(close.gang, close.message)

    def keep_spares(self, keep: decisions.KeepSpares) -> None:
        """Write the spare slots of a running gang, without changing the rest of the placement."""
        gang = keep.gang
        placement = self._cluster.ask(lambda state: state.placement_of(gang.key))
        if placement is None or gang.placement is None or placement.spec.epoch != gang.placement.spec.epoch:
            return  # the placement has changed, so the next cycle decides again
        self._patch(placement, content.with_spares(keep, placement))
        nodes = [each.node for each in keep.spares]
        log.info("spares", gang=gang.key, nodes=nodes, missing=keep.missing)

    def avoid(self, avoid: decisions.Avoid) -> None:
        """Write changed nodes that a gang avoids, and forget the failures that the decision has counted."""
        key, uids = avoid.gang.key, [pod.uid for pod in avoid.counted]
        placement = self._cluster.ask(lambda state: state.placement_of(key))
        if placement is not None and avoid.avoided is not None:
            self._patch(placement, content.avoiding(avoid, placement))
            nodes = {each.node: each.until for each in avoid.avoided if each.failures}
            log.info("members failed, the gang avoids their nodes", gang=key, nodes=nodes)
        self._cluster.ask(lambda state: state.failures.remember(key, avoid.avoided or ()))
        self._cluster.ask(lambda state: state.failures.forget(key, uids))

    def room_is_there(self, there: decisions.RoomIsThere) -> None:
        """Set a new deadline for the arrival of a gang's members, once the victims have ended."""
        placement = there.gang.placement
        if placement is None:
            return
        deadline_s = self._wall_s() + there.remade_s + arrival_s(there.new_slots)
        self._patch(placement, content.with_room(there, placement, deadline_s=deadline_s))
        log.info("the capacity for the gang is free", gang=there.gang.key, epoch=placement.spec.epoch)

    def mark_binding(self, placement: Placement, bound: int) -> None:
        """Start a write of phase Binding, shown by `kubectl get placements -w`; a lost write does no harm."""

        def write() -> None:
            try:
                self._patch(placement, content.binding(placement, bound))
            except APIError as error:
                log.debug("phase Binding not written", placement=placement.metadata.key, error=str(error))

        self._writes.start(Lane.WORDS, "binding", placement.metadata.key, write)

    def _patch(self, known: Placement, wanted: PlacementContent) -> None:
        meta = known.metadata
        if is_noted(known):  # remove the annotation first, because no pod may be created for an ended placement
            group = self._notes.remove(known)
            self._saw(None, self._create(group, wanted))
            self._cluster.ask(lambda state: state.on_pod_group_written(group))
            return
        patch = difference(PlacementContent.content_of(known).as_json(), wanted.as_json())
        body = {**patch, "metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version}}
        try:
            self._saw(known, self._client.merge_patch(PLACEMENTS, meta.name, body, meta.namespace))
        except NotFound:
            self._saw(known, None)  # the watch may report the deletion before the write's response
            raise

    def _saw(self, old: Placement | None, new: Placement | None) -> None:
        self._cluster.change(lambda state: state.on_placement(old, new))


def _assume(state: PlannerState, place: decisions.Place, wanted: Vector, now: float) -> bool:
    """Charge the new requests of a gang to its queue; return False if they would exceed the queue's limits.

    The requests of a gang whose members are only moved are already charged.
    """
    gang, ledger = place.gang, state.ledger
    limited = ledger.queues.limited
    if place.victims or gang.active or not limited.limits.above(gang.queue):
        return True
    claims = dict.fromkeys(claim for cls in _new_classes(place) for claim in cls.needs.named)
    new = _devices(gang.queue, claims, ledger.device_users)  # in addition to the gang's minResources, as in the ledger
    wanted = add(limited.minimums.growth(gang.key, subtract(wanted, new)), new)
    named = [claim.key for claim in claims]
    if limited.exceeded(gang.queue, gang.creator, wanted, now, named):
        return False
    ledger.assume(gang.key, gang.queue, state.classes.of_amounts(wanted), user=gang.creator)
    return True


def new_requests(place: decisions.Place, used: Mapping[str, Container[str]] = MappingProxyType({})) -> Vector:
    """Return the requests of all members of known pod classes that get a slot.

    The devices of a shared claim count once, or not at all if the queue already uses the claim. `used` maps a claim to
    the queues that use it.
    """
    classes = _new_classes(place)
    total: Vector = {}
    for cls, count in classes.items():
        total = add(total, scale(cls.requests, count))
    return add(total, _devices(place.gang.queue, (each for cls in classes for each in cls.needs.named), used))


def _devices(queue: str, claims: Iterable[SharedClaim], used: Mapping[str, Container[str]]) -> Vector:
    """Return the devices of those claims that the queue does not use yet; each claim counts once."""
    new = (claim for claim in dict.fromkeys(claims) if queue not in used.get(claim.key, ()))
    return reduce(add, (dict(claim.rows) for claim in new), Vector())


def _new_classes(place: decisions.Place) -> Counter[PodClass]:
    """Return the known pod classes of all members that get a slot, with the number of members of each class."""
    sets = {pod_set.name: pod_set for pod_set in place.gang.pod_sets}
    classes: Counter[PodClass] = Counter()
    for placed in place.pod_sets:
        pod_set = sets.get(placed.name)
        for ranks, _ in ranks_of(placed.runs) if pod_set else ():
            for rank in ranks:
                if pod_set and rank not in pod_set.taken and (cls := pod_set.class_of(rank)):
                    classes[cls] += 1
    return classes


def moves(place: decisions.Place) -> bool:
    """Return True for the placement of a gang that is moved, so that its own members are victims."""
    return any(victim is place.gang for victim, _ in place.victims)

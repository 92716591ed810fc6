"""Writer of the placements of gangs with one pod, which are stored in an annotation of the PodGroup.

One write changes both the annotation (`muster.api.muster.placement`) and the resulting phase. Placements of all other
gangs are separate objects (`extender.placements`).
"""

from typing import Any

from extender.groupcontent import status_body, wanted_status
from extender.groupstatus import PodGroupStatusWriter
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView
from extender.writes import WriteContext, Writer
from muster.api import names
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.muster.native import is_native
from muster.api.muster.placement import Placement
from muster.api.muster.placementnotes import PlacementContent, is_noted, noted
from muster.api.volcano.scheduling import POD_GROUPS, PodGroup
from muster.kube.errors import Conflict


class NoteWriter(Writer):
    """Writer of placements as annotations of PodGroups; statuses written together with them go to `statuses`."""

    def __init__(self, context: WriteContext, statuses: PodGroupStatusWriter) -> None:
        super().__init__(context)
        self._statuses = statuses

    def write(self, session: Session, gang: GangView, wanted: PlacementContent, *, placed: bool) -> None:
        """Write the annotation together with the PodGroup's status; `placed` is true if the write places the gang.

        The end of a placement is written once the pod has run for a moment. Until then, each cycle decides again to end
        the placement.
        """
        known = gang.placement
        status = wanted_status(gang, enqueued=gang.key in session.enqueued, placed=placed, waits=None, now=session.now)
        if not placed and self._statuses.holds(gang, status):
            return
        body = {"metadata": {"annotations": {names.PLACEMENT: wanted.as_note()}}, "status": status_body(status)}
        group = self._patch(gang.group.metadata, known, body)
        self._statuses.wrote(gang, status)
        self._cluster.change(lambda state: state.on_pod_group_written(group))

    def is_due(self, close: decisions.ClosePlacement) -> bool:
        """Return False if the end of this placement is known to be written later."""
        return close.phase != "Bound" or not self._statuses.still_holds(close.gang)

    def remove(self, known: Placement) -> PodGroup:
        """Remove the annotation before the placement becomes a Placement object; the caller updates the state later."""
        return self._patch(known.metadata, known, {"metadata": {"annotations": {names.PLACEMENT: None}}})

    def _patch(self, meta: ObjectMeta, known: Placement | None, body: dict[str, Any]) -> PodGroup:
        """Patch the current version of the PodGroup, provided its annotation has not changed."""
        key, decided = meta.key, PlacementContent.content_of(known)
        now = self._cluster.ask(lambda state: state.groups.get(key))
        if now is None or now.metadata.uid != meta.uid or PlacementContent.content_of(noted(now)) != decided:
            raise Conflict("the PodGroup records another placement now", where=f"PodGroup {key}")
        own = {**body["metadata"], "uid": now.metadata.uid, "resourceVersion": now.metadata.resource_version}
        return self._client.merge_patch(
            POD_GROUPS, now.metadata.name, {**body, "metadata": own}, now.metadata.namespace
        )


def fits(place: decisions.Place, known: Placement | None) -> bool:
    """Return True for a gang of one pod, without victims or a Placement object: its placement can be an annotation."""
    gang, pod_set = place.gang, place.pod_sets[0]
    alone = place.new_slots == 1 == sum(each.replicas for each in gang.pod_sets) and gang.min_member <= 1
    more = place.victims or place.spares or place.borrows
    plain = len(place.pod_sets) == 1 and not (more or pod_set.held or any(pod_set.gpus))
    return (
        alone
        and plain
        and not is_native(gang.group)
        and (known is None or (is_noted(known) and known.spec.pod_group_uid == gang.uid))
    )

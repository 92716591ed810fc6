"""Placements in an annotation of the PodGroup: the short form for a gang with one pod.

Most gangs have one pod, and writing a `Placement` object for each of them takes longer than planning them. For a gang
with one pod, an annotation replaces the Placement object; it is written together with the gang's phase. A gang with one
pod needs a Placement object only for reserved capacity, victims or an abandoned placement.
"""

from typing import Any

import msgspec
from msgspec import field

from muster.api import names
from muster.api.base import Wire
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.muster.placement import Placement, PlacementSpec, PlacementStatus
from muster.api.volcano.scheduling import POD_GROUPS, PodGroup


class PlacementContent(Wire):
    """Content of a placement, stored as an object or as an annotation."""

    spec: PlacementSpec = field(default_factory=PlacementSpec)
    status: PlacementStatus = field(default_factory=PlacementStatus)

    @classmethod
    def content_of(cls, placement: Placement | None) -> "PlacementContent":
        """Return the content of a placement; empty content for None."""
        return cls() if placement is None else cls(spec=placement.spec, status=placement.status)

    def as_json(self) -> dict[str, Any]:
        """Return the placement's content for users; default values are left out, except epoch and phase."""
        content: dict[str, Any] = msgspec.to_builtins(self)
        content["spec"]["epoch"], content["status"]["phase"] = self.spec.epoch, self.status.phase
        return content

    def as_note(self) -> str:
        """Return the content as text for the annotation of a PodGroup."""
        return msgspec.json.encode(self).decode()


_DECODER = msgspec.json.Decoder(PlacementContent)


def noted(group: PodGroup) -> Placement | None:
    """Return the placement in the PodGroup's annotation; None if the annotation is missing or unreadable.

    The returned placement has the kind, UID and resource version of the PodGroup, because changes are written to the
    PodGroup.
    """
    text = group.metadata.annotations.get(names.PLACEMENT)
    if not text:
        return None
    try:
        note = _DECODER.decode(text)
    except msgspec.MsgspecError:
        return None
    meta = group.metadata
    if note.spec.pod_group_uid != meta.uid:
        return None
    own = ObjectMeta(
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        resource_version=meta.resource_version,
        creation_timestamp=meta.creation_timestamp,
    )
    return Placement(
        api_version=POD_GROUPS.api_version, kind=POD_GROUPS.kind, metadata=own, spec=note.spec, status=note.status
    )


def current(group: PodGroup, placement: Placement | None) -> Placement | None:
    """Return the newer placement of a gang: its Placement object or its annotation.

    Those of an earlier PodGroup are ignored.
    """
    known = [each for each in (placement, noted(group)) if each and each.spec.pod_group_uid == group.metadata.uid]
    return max(known, key=lambda each: each.spec.epoch, default=None)


def is_noted(placement: Placement) -> bool:
    """Return True if the placement is stored in a PodGroup's annotation, not as an object."""
    return placement.kind == POD_GROUPS.kind

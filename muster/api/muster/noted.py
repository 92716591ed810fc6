"""The placement of a gang of one pod, noted in an annotation of its PodGroup.

Most gangs are of one pod, and each write costs the API server more than its planning costs Muster. So the annotation
takes the place of a `Placement`, in the same write as the phase that follows from it, as long as there is no more to
report: room that is kept, victims, or a placement that was given up make an object.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from muster.api import names
from muster.api.base import Wire
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.muster.placement import Placement, PlacementSpec, PlacementStatus
from muster.api.volcano.scheduling import POD_GROUPS, PodGroup


class _Note(Wire):
    spec: PlacementSpec = msgspec.field(default_factory=PlacementSpec)
    status: PlacementStatus = msgspec.field(default_factory=PlacementStatus)


_DECODER = msgspec.json.Decoder(_Note)


def noted(group: PodGroup) -> Placement | None:
    """Return the placement that is noted in the PodGroup; None if there is none, or it cannot be read.

    Its kind, UID and version are the PodGroup's, as changes of it are written there.
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


def is_noted(placement: Placement) -> bool:
    """Return True if the placement is noted in a PodGroup, and no object of its own."""
    return placement.kind == POD_GROUPS.kind


def text_of(spec: Mapping[str, Any], status: Mapping[str, Any]) -> str:
    """Return the text of the annotation; `spec` and `status` are a Placement's as JSON."""
    note = msgspec.convert({"spec": _given(spec), "status": _given(status)}, _Note)
    return msgspec.json.encode(note).decode()


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not None}

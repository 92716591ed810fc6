"""The objects that decisions about placements make in a replay, as `extender.placements` writes them."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from extender import placementstatus
from extender.placements import DEADLINE_PER_SLOT_S, DEADLINE_S, victims_of
from extender.planner.framework.decisions import Place
from muster.api.kubernetes.meta import ObjectMeta, format_time
from muster.api.merge_diff import applied
from muster.api.muster.placement import AvoidedNode, Placement, PlacementSpec, PlacementStatus


def placed(
    place: Place, known: Placement | None, remembered: Sequence[AvoidedNode], *, now: float, version: str
) -> Placement:
    """Return the placement of a decision; `known` is the one of the gang's name that exists."""
    meta = place.gang.group.metadata
    same = known if known is not None and known.spec.pod_group_uid == place.gang.uid else None
    before = msgspec.to_builtins(same.status) if same else {}
    deadline = max(now, place.waits_until) + DEADLINE_S + DEADLINE_PER_SLOT_S * place.new_slots
    named = ObjectMeta(
        name=meta.name, namespace=meta.namespace, uid=f"placement-{place.gang.uid}", resource_version=version
    )
    status = msgspec.convert(applied(before, placementstatus.opened(place, remembered)), PlacementStatus)
    return Placement(metadata=named, spec=spec_of(place, same, deadline), status=status)


def spec_of(place: Place, known: Placement | None, deadline_s: float) -> PlacementSpec:
    """Return the spec of a decision, with a deadline in seconds since the epoch; `known` is the gang's placement."""
    kept, lent = (known.spec.spares, known.spec.borrows) if known and place.gang.started else ([], [])
    return PlacementSpec(
        pod_group_uid=place.gang.uid,
        epoch=place.epoch,
        deadline=format_time(deadline_s),
        pod_sets=place.pod_sets,
        spares=kept if place.spares is None else place.spares,
        borrows=lent if place.borrows is None else place.borrows,
        victims=victims_of(place),
        victims_reason=place.victims_reason,
        notices=list(place.notices),
    )


def changed_by(known: Placement, spec: dict[str, Any], status: dict[str, Any], version: str) -> Placement:
    """Return a placement with fields of its spec and status changed, as a merge patch changes them."""
    meta = replace(known.metadata, resource_version=version)
    return Placement(
        metadata=meta,
        spec=msgspec.convert(applied(msgspec.to_builtins(known.spec), spec), PlacementSpec),
        status=msgspec.convert(applied(msgspec.to_builtins(known.status), status), PlacementStatus),
    )

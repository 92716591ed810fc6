"""The lifecycle of a gang's ProvisioningRequest: creation, answers of the autoscaler, retries, and withdrawal.

The ProvisioningRequest stores all state: the number of the attempt and, in its name, a digest of the demand. Another
process can therefore continue the request.
"""

import hashlib
from collections.abc import Iterable, Mapping
from math import inf
from typing import NamedTuple

from extender.planner import reasons
from extender.planner.framework.decisions import RequestNodes
from extender.planner.scaleup.podwrites import gated_pods
from extender.planner.scaleup.preferences import ScaleUpPreference
from extender.planner.state.gangs import GangView
from extender.planner.timing import CLOCKS_S
from muster.api import names
from muster.api.kubernetes.autoscaling import ProvisioningRequest
from muster.api.kubernetes.meta import readable_time
from muster.api.limits import whole_number
from muster.api.muster.reason import Reason
from muster.api.volcano.scheduling import POD_GROUPS
from muster.resources.delays import doubled_s

BACK_OFF_S = 60.0
"""Time, in seconds, from a failed request to the next request; doubled after each failure, as in Kueue."""
MAX_REQUEST_DELAY_S = 1800.0
MAX_POD_SETS = 32
"""Maximum number of pod sets in a ProvisioningRequest, as in the API."""
_GROUP_CHARS = 200
_ENDS = {"Failed": "ProvisioningFailed", "CapacityRevoked": "CapacityRevoked", "BookingExpired": "BookingExpired"}
"""Maps a condition that ends a ProvisioningRequest to the reason for the gang's condition."""


class AutoscalerAnswer(NamedTuple):
    """The autoscaler's latest answer to a ProvisioningRequest, read from the request's conditions."""

    reason: str
    """The reason for the gang's condition, a CamelCase word; empty if unchanged."""
    words: Reason
    again_at: float | None = None
    """Earliest time of the next request, in seconds since the epoch; None before this request has ended."""


def answer_to(request: ProvisioningRequest, *, timeout_s: float, now: float) -> AutoscalerAnswer:
    """Return the answer in a request's conditions; a request that gets no answer in time has timed out.

    A provisioned request is kept. If its gang does not start on the new nodes, other gangs of the queue may request
    nodes.
    """
    name = request.metadata.name
    conditions = {condition.type: condition for condition in request.status.conditions}
    status = {kind: condition.status for kind, condition in conditions.items()}
    created = _past(request.metadata.creation_timestamp, now)
    for kind, reason in _ENDS.items():
        if status.get(kind) == "True":
            ended = max(created, _past(conditions[kind].last_transition_time, now))
            return _over(request, reason, reasons.scaleup.ended(name, conditions[kind]), ended)
    if status.get("Provisioned") == "True":
        since = _past(conditions["Provisioned"].last_transition_time, now)
        late = now >= since + timeout_s
        idle = reasons.scaleup.idle(name=name, timeout_s=timeout_s)
        return AutoscalerAnswer("", idle if late else reasons.scaleup.provisioned(name=name), inf if late else None)
    if now >= created + timeout_s:
        words = reasons.scaleup.timed_out(name, timeout_s, conditions)
        return _over(request, reasons.scaleup.TIMED_OUT, words, created + timeout_s)
    if status.get("Provisioned") == "False":
        return AutoscalerAnswer(reasons.scaleup.REFUSED, reasons.scaleup.refused(name, conditions["Provisioned"]))
    if status.get("Accepted") == "True":
        return AutoscalerAnswer("", reasons.scaleup.accepted(name=name))
    return AutoscalerAnswer("", reasons.scaleup.unanswered(name=name))


def attempt_of(request: ProvisioningRequest) -> int:
    """Return the number of the gang's attempt to which the request belongs, from 1."""
    return whole_number(request.metadata.annotations.get(names.SCALE_UP_ATTEMPT)) or 1


def provisioned(request: ProvisioningRequest) -> bool:
    """Return True if the request's condition Provisioned is True: the nodes exist or are being created."""
    return any(each.type == "Provisioned" and each.status == "True" for each in request.status.conditions)


def consumption(request: ProvisioningRequest | None) -> dict[str, str]:
    """Return the annotations of pods that use a provisioned request; empty if the request is not provisioned."""
    if request is None or not provisioned(request):
        return {}
    return {names.CONSUMED_REQUEST: request.metadata.name, names.CONSUMED_CLASS: request.spec.provisioning_class_name}


def new_request(
    gang: GangView, wanted: Mapping[str, int], preference: ScaleUpPreference, attempt: int
) -> RequestNodes | None:
    """Return the request to create; None while a pod set has no pod that can serve as its template."""
    samples = {pod.slot.pod_set: pod for pod in reversed(gated_pods(gang)) if pod.slot is not None}
    asked = {name: count for name, count in wanted.items() if count}
    if not asked or not asked.keys() <= samples.keys():
        return None
    pods = tuple((name, count, samples[name]) for name, count in asked.items())
    return RequestNodes(
        gang,
        name_of(gang, wanted, preference, attempt),
        attempt,
        preference.provisioning_class,
        preference.parameters,
        pods,
    )


def name_of(gang: GangView, wanted: Mapping[str, int], preference: ScaleUpPreference, attempt: int) -> str:
    """Return the name of a gang's request; the name changes with the gang's demand."""
    shapes = [
        [each.name, wanted[each.name], each.cls.shape.hex() if each.cls else ""]
        for each in gang.pod_sets
        if wanted[each.name]
    ]
    what = repr([gang.uid, shapes, preference.provisioning_class, preference.parameters])
    digest = hashlib.sha256(what.encode()).hexdigest()[:8]
    return f"{gang.group.metadata.name[:_GROUP_CHARS]}-{digest}-{attempt}"


def pause_s(failed: int) -> float:
    """Return the seconds for which a gang pauses after `failed` (at least 1) requests without success."""
    return doubled_s(BACK_OFF_S, failed - 1, MAX_REQUEST_DELAY_S)


def _past(text: str | None, now: float) -> float:
    """Return a time as seconds since the epoch; `now` for a time that cannot be parsed.

    A time in the future counts as long past, because the clock was set back or a user wrote the time.
    """
    at = readable_time(text) or now
    return at if at <= now + CLOCKS_S else -inf


def _over(request: ProvisioningRequest, reason: str, words: Reason, ended: float) -> AutoscalerAnswer:
    return AutoscalerAnswer(reason, words, ended + pause_s(attempt_of(request)))


def newest(found: Iterable[ProvisioningRequest]) -> dict[str, ProvisioningRequest]:
    """Return the latest ProvisioningRequest of each gang, keyed by the gang's UID."""
    result: dict[str, ProvisioningRequest] = {}
    for request in sorted(found, key=attempt_of):
        for owner in request.metadata.owner_references:
            if owner.kind == POD_GROUPS.kind:
                result[owner.uid] = request
    return result

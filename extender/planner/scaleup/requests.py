"""The life of a gang's ProvisioningRequest: made when it is the gang's turn, read, tried again, withdrawn.

All that is remembered stands in the request itself: which attempt it is, and in its name what it was made for. So
another process goes on where this one ended.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from extender.planner import reasons
from extender.planner.framework.decisions import RequestNodes
from extender.planner.scaleup.voices import speakers
from extender.planner.scaleup.wishes import Wish
from extender.planner.state.gangs import GangView
from muster.api import names
from muster.api.kubernetes.autoscaling import ProvisioningRequest
from muster.api.kubernetes.meta import readable_time
from muster.api.limits import whole_number
from muster.api.volcano.scheduling import POD_GROUPS

Stage = Literal["asked", "provisioned", "refused", "over"]
BACK_OFF_S = 60.0
"""How long after a request that came to nothing the next one is made; each time twice as long, as Kueue does."""
MAX_BACK_OFF_S = 1800.0
MAX_POD_SETS = 32
"""The kind takes no more."""
_DOUBLINGS = 10
_GROUP_CHARS = 200
_ENDS = {"Failed": "ProvisioningFailed", "CapacityRevoked": "CapacityRevoked", "BookingExpired": "BookingExpired"}
"""Conditions that end a request, and the reason that its gang is given."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the autoscaler has made of a request so far."""

    stage: Stage
    reason: str
    """One word for the gang's condition; empty if there is nothing to say."""
    words: str
    again_at: float = 0.0
    """When the next request may be made, in seconds since the epoch, if this one is over."""


def answer_to(request: ProvisioningRequest, *, timeout_s: float, now: float) -> Answer:
    """Reads a request's conditions; what has neither been provisioned nor failed in time has timed out."""
    name = request.metadata.name
    said = {condition.type: condition for condition in request.status.conditions}
    for kind, reason in _ENDS.items():
        if kind in said and said[kind].status == "True":
            ended = readable_time(said[kind].last_transition_time) or now
            return _over(request, reason, reasons.scaleup.ended(name, said[kind]), ended)
    provisioned = said.get("Provisioned")
    if provisioned is not None and provisioned.status == "True":
        return Answer("provisioned", "", reasons.scaleup.provisioned(name=name))
    created = readable_time(request.metadata.creation_timestamp) or now
    if now >= created + timeout_s:
        words = reasons.scaleup.timed_out(name, timeout_s, said)
        return _over(request, reasons.scaleup.TIMED_OUT, words, created + timeout_s)
    if provisioned is not None and provisioned.status == "False":
        return Answer("refused", reasons.scaleup.REFUSED, reasons.scaleup.refused(name, provisioned))
    accepted = said.get("Accepted")
    if accepted is not None and accepted.status == "True":
        return Answer("asked", "", reasons.scaleup.accepted(name=name))
    return Answer("asked", "", reasons.scaleup.unanswered(name=name))


def attempt_of(request: ProvisioningRequest) -> int:
    """Which of its gang's requests it is, from 1 on."""
    return whole_number(request.metadata.annotations.get(names.SCALE_UP_ATTEMPT)) or 1


def provisioned(request: ProvisioningRequest) -> bool:
    """Whether the autoscaler says that its room is there, or will be."""
    return any(each.type == "Provisioned" and each.status == "True" for each in request.status.conditions)


def consumption(request: ProvisioningRequest | None) -> dict[str, str]:
    """The annotations of pods that use what a request has provisioned; none while it has not."""
    if request is None or not provisioned(request):
        return {}
    return {names.CONSUMED_REQUEST: request.metadata.name, names.CONSUMED_CLASS: request.spec.provisioning_class_name}


def new_request(gang: GangView, wanted: Mapping[str, int], wish: Wish, attempt: int) -> RequestNodes | None:
    """What to ask for; None while some pod set has no pod that shows what its pods are."""
    samples = {pod.slot.pod_set: pod for pod in reversed(speakers(gang)) if pod.slot is not None}
    asked = {name: count for name, count in wanted.items() if count}
    if not asked or not asked.keys() <= samples.keys():
        return None
    pods = tuple((name, count, samples[name]) for name, count in asked.items())
    return RequestNodes(
        gang, name_of(gang, wanted, wish, attempt), attempt, wish.provisioning_class, wish.parameters, pods
    )


def name_of(gang: GangView, wanted: Mapping[str, int], wish: Wish, attempt: int) -> str:
    """The name of a gang's request; another one if it were to be for something else."""
    shapes = [
        [each.name, wanted[each.name], each.cls.shape.hex() if each.cls else ""]
        for each in gang.pod_sets
        if wanted[each.name]
    ]
    what = repr([gang.uid, shapes, wish.provisioning_class, wish.parameters])
    digest = hashlib.sha256(what.encode()).hexdigest()[:8]
    return f"{gang.group.metadata.name[:_GROUP_CHARS]}-{digest}-{attempt}"


def _over(request: ProvisioningRequest, reason: str, words: str, ended: float) -> Answer:
    wait_s = min(BACK_OFF_S * 2.0 ** (min(attempt_of(request), _DOUBLINGS) - 1), MAX_BACK_OFF_S)
    return Answer("over", reason, words, ended + wait_s)


def newest(found: Iterable[ProvisioningRequest]) -> dict[str, ProvisioningRequest]:
    """Of these requests the last attempt for each gang, by the gang's UID."""
    result: dict[str, ProvisioningRequest] = {}
    for request in sorted(found, key=attempt_of):
        for owner in request.metadata.owner_references:
            if owner.kind == POD_GROUPS.kind:
                result[owner.uid] = request
    return result

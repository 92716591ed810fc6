"""Messages about a gang's node requests, which autoscalers fulfil. The gang's PodGroup and pods show the messages."""

from collections.abc import Mapping

from muster.api.kubernetes.meta import ReportedCondition
from muster.api.muster.reason import Reason, Sentence, constant

NOT_SERVED = "ProvisioningNotServed"
REFUSED = "ProvisioningRefused"
TIMED_OUT = "ProvisioningTimedOut"
IN_VAIN = "ScaleUpInVain"
"""Reasons for conditions of the pods, as CamelCase words."""

NODES_EXIST = constant(
    "nodes-exist",
    "free nodes would hold the gang's pods one by one, so autoscalers would add no nodes, and none are requested",
)
not_asked = Sentence("nodes-not-asked", "no nodes are requested: {why}")
KIND_MISSING = not_asked(why="the cluster has no ProvisioningRequest (autoscaling.x-k8s.io/v1)")
too_many_pod_sets = Sentence(
    "nodes-too-many-pod-sets",
    "no nodes are requested: the gang has {pod_sets} pod sets, but a ProvisioningRequest can have at most {most}",
)
bad_mode = "{key} is {mode!r}, but must be {known}".format
bad_timeout = "{key}: {error}".format
bad_class = "{key} is {name!r}, which cannot be the name of a class".format
not_of_queue = "only the queue may set {key}: remove it from the workload, or set the same value on the queue".format
long_parameter = "{key} has a value of {chars} characters for {name!r}; at most {most} are allowed".format
bad_parameter = "{key} has {part!r}; write it like key=value,key=value".format

in_vain = Sentence(
    "nodes-in-vain", "the gang requested nodes but could not start; its next request follows after {pause_s:g} s"
)

after_the_first = "the gang waits for nodes that do not exist yet; {pod} says why".format

REPLACED = "another request replaces this one"
NOT_NEEDED = "the gang no longer needs the request"
accepted = Sentence("nodes-accepted", "ProvisioningRequest {name} is accepted")
unanswered = Sentence("nodes-unanswered", "ProvisioningRequest {name} is not accepted yet")
provisioned = Sentence("nodes-provisioned", "ProvisioningRequest {name} is provisioned, but its nodes do not exist yet")
idle = Sentence(
    "nodes-provisioned-idle",
    "ProvisioningRequest {name} was provisioned more than {timeout_s:g} s ago, but the gang has not started: other "
    "gangs may request nodes",
)
_ended = Sentence("nodes-request-ended", "ProvisioningRequest {name}: {kind}{why}")
_refused = Sentence("nodes-refused", "ProvisioningRequest {name} is refused{why}")
_timed_out = Sentence(
    "nodes-timed-out", "ProvisioningRequest {name} was not provisioned within {timeout_s:g} s ({told})"
)


def ended(name: str, condition: ReportedCondition) -> Reason:
    """The request for nodes has ended with this condition."""
    return _ended(name=name, kind=condition.type, why=_why(condition))


def refused(name: str, condition: ReportedCondition) -> Reason:
    """The autoscaler does not provision the requested nodes at present."""
    return _refused(name=name, why=_why(condition))


def timed_out(name: str, timeout_s: float, conditions: Mapping[str, ReportedCondition]) -> Reason:
    """The requested nodes were not provisioned in time; `conditions` maps types to the request's conditions."""
    last = next((conditions[kind] for kind in ("Provisioned", "Accepted") if kind in conditions), None)
    state = f"{last.type} is {last.status}{_why(last)}" if last is not None else "no autoscaler has processed it"
    return _timed_out(name=name, timeout_s=timeout_s, told=state)


def _why(condition: ReportedCondition) -> str:
    return "".join(f": {part}" for part in (condition.reason, condition.message) if part)

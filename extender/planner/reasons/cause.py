"""Causes: short phrases that describe why a node does not accept a pod. Plugins of other packages may add causes.

In messages, a cause follows a number of nodes (`3 cordoned`, `1 has the taint gpu=yes`). In arrays, a cause is a
number, which `Causes` assigns.
"""

from muster.api.kubernetes.devices import DEVICE_CLASS_RESOURCE
from muster.api.muster.node_faults import Fault
from muster.api.muster.reason import Reason, Sentence, constant, worded
from muster.resources.vector import GPU, amount_text

TAINT, SUSPECT, NOT_READY, SCARCE = "node-taint", "node-suspect", "node-not-ready", "node-scarce"
"""Codes of the causes that other modules compare with."""

OTHER = constant(
    "node-other", "refused for a reason that is no longer recorded (restart the extender to see the reason)"
)

GPU_PARTS = constant("node-gpu-parts", "no GPU with enough room")
"""The free fractions of the node's GPUs would suffice in total, but no single GPU has enough for the pod."""
DIVIDED = constant("node-gpus-divided", "has GPUs divided by MIG, of which pods cannot request fractions by annotation")
REFUSED_A_MEMBER = constant("node-refused-a-member", "recently refused a member of this gang")
FAILED_A_MEMBER = constant("node-failed-a-member", "avoided, because a member of this gang failed there")
reserved = Sentence("node-reserved", "reserved for {gang}")

GONE = constant("node-gone", "is gone")
suspect = Sentence(SUSPECT, "suspect ({cause})")
"""The node has a fault that another program has reported."""
not_ready = Sentence(NOT_READY, "not ready ({cause})")
CORDONED = constant("node-cordoned", "cordoned")
NODE_SELECTOR = constant("node-selector", "does not match the node selector")
NODE_AFFINITY = constant("node-own-affinity", "does not match the node affinity")

port_taken = Sentence("node-port-taken", "host port {port} is in use")
claim_in_use = Sentence("node-claim-in-use", "claim {claim} is used by another pod")
spread_label = Sentence("node-spread-label", "lacks the label {key} over which pods are spread")
spread_skew = Sentence("node-spread-skew", "spread over {key} would exceed maxSkew {skew}")
affinity_label = Sentence("node-affinity-label", "lacks the label {key} of the pod affinity")
affinity = Sentence("node-affinity", "affinity: no pod with {query} in the same {key}")
anti_affinity = Sentence("node-anti-affinity", "anti-affinity with pods with {query} in the same {key}")
anti_affinity_of_others = Sentence(
    "node-anti-affinity-of-others", "a pod in the same {key} has anti-affinity with pods with {query}"
)
anti_affinity_of_many = Sentence(
    "node-anti-affinity-of-many", "one of many pods in the same {key} has anti-affinity with the pod"
)

claim_missing = Sentence("node-claim-missing", "claim {claim} does not exist")
claim_lost = Sentence("node-claim-lost", "claim {claim} has lost its volume")
claim_deleted = Sentence("node-claim-deleted", "claim {claim} is being deleted")
claim_unbound = Sentence("node-claim-unbound", "claim {claim} is not bound yet")
claim_without_class = Sentence("node-claim-without-class", "claim {claim} has neither a volume nor a storage class")
class_missing = Sentence("node-class-missing", "storage class {name} of claim {claim} does not exist")
volume_missing = Sentence("node-volume-missing", "volume {volume} of claim {claim} does not exist")
volume_elsewhere = Sentence("node-volume-elsewhere", "volume {volume} is elsewhere")
volume_in_another_zone = Sentence("node-volume-in-another-zone", "volume {volume} is in another zone")
volume_made_elsewhere = Sentence(
    "node-volume-made-elsewhere", "the volume of claim {claim} is being provisioned elsewhere"
)


@worded(TAINT)
def taint(key: str, value: str) -> str:
    """The node has a taint that the pod does not tolerate."""
    return f"has the taint {taint_text(key, value)}"


def taint_text(key: str, value: str) -> str:
    """Return a taint as `key=value` or `key`, without its effect."""
    return f"{key}={value}" if value else key


@worded("node-over-model")
def over_model(model: str, queue: str, most: int) -> str:
    """The gang's queue, or a queue above it, is not allowed to use more GPUs of the node's model."""
    return f"has GPUs of model {model}, of which queue {queue} may use {amount_text(GPU, most)} (max-by-model)"


def faulty(fault: Fault) -> Reason:
    """Return the reason why a faulty node gets no pods."""
    return suspect(cause=fault.cause) if fault.kind == "suspect" else not_ready(cause=fault.cause)


def fault_in(cause: Reason) -> str:
    """Return the condition or taint that makes a node faulty; empty if the cause is not a fault."""
    return str(cause.params["cause"]) if cause.code in {SUSPECT, NOT_READY} else ""


@worded(SCARCE)
def scarce(resource: str) -> str:
    """Too little of a resource is free on the node."""
    if resource.startswith(DEVICE_CLASS_RESOURCE):
        return f"too few devices of class {resource.removeprefix(DEVICE_CLASS_RESOURCE)}"
    return "too many pods" if resource == "pods" else f"too little {resource}"

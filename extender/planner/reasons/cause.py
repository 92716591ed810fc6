"""Causes: why one node does not take a pod, in a few words. Plugins of other packages may have others.

A cause follows a number of nodes (`3 cordoned`, `1 has the taint gpu=yes`), and each is a code in `Causes`.
"""

from muster.api.kubernetes.devices import DEVICE_CLASS_RESOURCE
from muster.resources.vector import GPU, amount_words

OTHER = "refused for a reason that is not told apart any more (restart the extender to see it)"

GPU_PARTS = "no GPU with enough room"
"""The node's GPUs have enough room together, and none of them for the pod."""
DIVIDED = "its GPUs are divided (MIG), which takes no parts by annotation"
REFUSED_A_MEMBER = "refused a member of this gang a moment ago"
FAILED_A_MEMBER = "left out, as a member of this gang failed there"
reserved = "reserved for {gang}".format

GONE = "is gone"
suspect = "suspect ({cause})".format
"""A node with a fault that others have found."""
not_ready = "not ready ({cause})".format
CORDONED = "cordoned"
NODE_SELECTOR = "does not match the node selector"
NODE_AFFINITY = "does not match the node affinity"
TAINT = "has the taint "

port_taken = "host port {port} is taken".format
claim_in_use = "claim {claim} is used by another pod".format
spread_label = "lacks the label {key} that pods are spread over".format
spread_skew = "spread over {key} would exceed maxSkew {skew}".format
affinity_label = "lacks the label {key} of the pod affinity".format
affinity = "affinity: no pod with {query} in the same {key}".format
anti_affinity = "anti-affinity with pods with {query} in the same {key}".format
anti_affinity_of_others = "a pod in the same {key} has anti-affinity with pods with {query}".format
anti_affinity_of_many = "one of many pods in the same {key} has anti-affinity with it".format

claim_missing = "claim {claim} does not exist".format
claim_lost = "claim {claim} has lost its volume".format
claim_deleted = "claim {claim} is being deleted".format
claim_unbound = "claim {claim} is not bound yet".format
claim_without_class = "claim {claim} has neither a volume nor a storage class".format
class_missing = "storage class {name} of claim {claim} does not exist".format
volume_missing = "volume {volume} of claim {claim} does not exist".format
volume_elsewhere = "volume {volume} is elsewhere".format
volume_in_another_zone = "volume {volume} is in another zone".format
volume_made_elsewhere = "the volume of claim {claim} is being made elsewhere".format


def taint(key: str, value: str) -> str:
    """A taint that the pod does not tolerate."""
    return TAINT + (f"{key}={value}" if value else key)


def over_model(model: str, queue: str, most: int) -> str:
    """The gang's queue, or one above it, may use no more GPUs of the node's model."""
    return f"has GPUs of model {model}, of which queue {queue} may use {amount_words(GPU, most)} (max-by-model)"


def fault_in(words: str) -> str:
    """Return the condition or taint in the words about a faulty node; empty for other causes."""
    for kind in (suspect, not_ready):
        before, after = kind(cause="\n").split("\n")
        if words.startswith(before) and words.endswith(after):
            return words.removeprefix(before).removesuffix(after)
    return ""


def scarce(resource: str) -> str:
    """Too little of a resource is free."""
    if resource.startswith(DEVICE_CLASS_RESOURCE):
        return f"too few devices of class {resource.removeprefix(DEVICE_CLASS_RESOURCE)}"
    return "too many pods" if resource == "pods" else f"too little {resource}"

"""Problems with device claims (resource.k8s.io), and demands of claims that only kube-scheduler checks.

In messages, the demands that only kube-scheduler checks follow the text `kube-scheduler decides, not counted:`.
"""

from muster.api.grammar import many
from muster.api.muster.reason import Sentence, constant, worded

ELSEWHERE = constant("devices-elsewhere", "the pod's devices are elsewhere")
elsewhere_used = Sentence("device-elsewhere-used", "resource claim {claim} is used on another node")
template_missing = Sentence("device-template-missing", "resource claim template {template} does not exist")
claim_missing = Sentence("device-claim-missing", "resource claim {claim} does not exist")
claim_deleted = Sentence("device-claim-deleted", "resource claim {claim} is being deleted")
claim_going = Sentence("device-claim-going", "another gang waits for the devices of resource claim {claim}")
claim_unmade = Sentence(
    "device-claim-unmade", "the claim of resource claim template {template} has not been created for its PodGroup yet"
)
claim_of_group = Sentence(
    "device-claim-of-group",
    "resource claim {claim} was created for all pods of a PodGroup, but Muster's kube-scheduler has the feature gates "
    "for such claims disabled; name an existing ResourceClaim (resourceClaimName) in the PodGroup and in its pods",
)


@worded("device-claim-full")
def claim_full(claim: str, most: int) -> str:
    """The claim has its maximum number of users, so no other pod can use it."""
    return f"resource claim {claim} is used by {many(most, 'pod')}, the maximum for one claim"


@worded("device-claim-too-full")
def claim_too_full(claim: str, used: int, most: int) -> str:
    """More pods would use the claim than the API allows."""
    return f"resource claim {claim} is used by {many(used, 'pod')}, but at most {most} may use it"


class_missing = Sentence("device-class-missing", "device class {name} does not exist")

request = "request {request!r}: {why}".format
UNKNOWN_KIND = "this version of Muster does not know the request's kind"
unknown_mode = "this version of Muster does not know the allocation mode {mode!r}".format
UNKNOWN_CONSTRAINT = "a constraint of the claim has an unknown kind"
ALTERNATIVES = "some alternatives request more than one device"
PART = "the request is for a part of a device"
alike = "{what}: devices with the same {attribute}".format
NOT_OF_ONE_NODE = "some of these devices are parts of other devices, shared, or not on a single node"
too_many_kinds = Sentence("device-too-many-kinds", "the gang's claims request more than {most} kinds of devices")

not_understood = "the expression cannot be evaluated: {error}".format
too_many_answers = "the expression would be evaluated for more than {most} different devices".format
TOO_LONG = "the expression is too long or has too many loops"
TOO_MANY_STEPS = "the expression takes too many steps"

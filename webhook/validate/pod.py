"""Pods of our schedulers: their disruption budget, and how many resources they name."""

from msgspec.json import Decoder

from muster.api.admission import AdmissionRequest
from muster.api.core import Pod
from muster.api.limits import RESOURCES
from muster.resources.pods import resource_names
from webhook.review import Verdict, decode
from webhook.validate.disruption import check_amounts, check_one_of_two

_POD = Decoder(Pod)


def review(request: AdmissionRequest) -> Verdict:
    """The handler for pods of our schedulers that have such an annotation or name many resources, on CREATE."""
    pod = decode(request.object, _POD)
    annotations, path = pod.metadata.annotations, "metadata.annotations"
    return Verdict(
        errors=[
            *check_amounts(annotations, path),
            *check_one_of_two(annotations, path),
            *RESOURCES.exceeded_by("spec.containers", len(resource_names(pod.spec))),
        ]
    )

"""Pods of our schedulers: their disruption budget, their topology, their part of GPUs, and their resource names."""

from msgspec.json import Decoder

from muster.api.kubernetes.admission import AdmissionRequest
from muster.api.kubernetes.core import Pod
from muster.api.limits import RESOURCES
from muster.resources.gpus import share_errors
from muster.resources.pods import resource_names
from muster.resources.topology import mistakes
from webhook.review import Verdict, decode
from webhook.validate.disruption import check_amounts, check_one_of_two

_POD = Decoder(Pod)


def review(request: AdmissionRequest) -> Verdict:
    """The handler for pods of our schedulers that have such an annotation or resource, or name many, on CREATE.

    What a template says of topology is checked with the workload; what slipped through there has no effect here.
    """
    pod = decode(request.object, _POD)
    annotations, path = pod.metadata.annotations, "metadata.annotations"
    return Verdict(
        errors=[
            *check_amounts(annotations, path),
            *check_one_of_two(annotations, path),
            *([] if pod.metadata.controller else mistakes(annotations, path)),
            *share_errors(annotations, pod.spec, path, "spec"),
            *RESOURCES.exceeded_by("spec.containers", len(resource_names(pod.spec))),
        ]
    )

"""Validation of pods of Muster's schedulers: disruption budget, topology, part of a GPU, resource names."""

from msgspec.json import Decoder

from muster.api.kubernetes.admission import AdmissionRequest
from muster.api.kubernetes.core import Pod
from muster.api.limits import RESOURCES
from muster.resources.gpus import share_errors
from muster.resources.pods import resource_names
from muster.resources.topology import mistakes
from webhook.review import Verdict, decode
from webhook.validate.podtemplate import check_budgets

_POD = Decoder(Pod)


def review(request: AdmissionRequest) -> Verdict:
    """Review a new pod that `conditions.NEEDS_A_CHECK` selects.

    The topology of a controller's pod was checked in its workload; a mistake that slipped through has no effect.
    """
    pod = decode(request.object, _POD)
    annotations, path = pod.metadata.annotations, "metadata.annotations"
    return Verdict(
        errors=[
            *check_budgets(annotations, path),
            *([] if pod.metadata.controller else mistakes(annotations, path)),
            *share_errors(annotations, pod.spec, path, "spec"),
            *RESOURCES.exceeded_by("spec.containers", len(resource_names(pod.spec))),
        ]
    )

"""Validation of both kinds of runtimes: the rules of `muster.runtime.training_runtime`, and policies by name."""

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import msgspec
from msgspec.json import Decoder

from muster.api.base import Wire
from muster.api.fields import FieldError
from muster.api.kubeflow.trainingruntime import ClusterTrainingRuntime, MLPolicy, TrainingRuntime
from muster.api.kubernetes.admission import AdmissionRequest
from muster.runtime.train_job import Target
from muster.runtime.training_runtime import check
from webhook.review import Handler, Verdict, decode
from webhook.validate.trainjob import deprecation

_POLICIES = {each.encode_name for each in msgspec.structs.fields(MLPolicy)}


class _Spec(Wire):
    """ML policies of any name."""

    ml_policy: dict[str, Any] | None = None


class _Policied(Wire):
    """A runtime, reduced to its ML policies."""

    spec: _Spec = msgspec.field(default_factory=_Spec)


_POLICY = Decoder(_Policied)


def reviewer(kind: type[TrainingRuntime | ClusterTrainingRuntime], target: Target = "Job") -> Handler:
    """Return the handler for one of the two kinds, on CREATE and UPDATE."""
    decoder = Decoder(kind)

    def review(request: AdmissionRequest) -> Verdict:
        runtime = decode(request.object, decoder)
        policy, warnings = runtime.spec.ml_policy, []
        if policy and policy.flux is not None:
            warnings.append("spec.mlPolicy.flux: Muster does not run Flux; TrainJobs of this runtime will be refused")
        if request.operation == "UPDATE" and _same(request, decoder):
            return Verdict(warnings=warnings)  # only metadata has changed
        if request.operation == "CREATE":
            warnings += deprecation(runtime, f"{kind.__name__} {request.name or runtime.metadata.name}")
        errors = [*_check_policy(request.object), *check(runtime, target)]
        return Verdict(errors=errors, warnings=warnings, refusal=HTTPStatus.FORBIDDEN)

    return review


def _same(request: AdmissionRequest, decoder: Decoder[Any]) -> bool:
    """Return True if the spec is unchanged, policies that Muster does not know included."""
    return all(
        decode(request.old_object, each).spec == decode(request.object, each).spec for each in (decoder, _POLICY)
    )


def _check_policy(raw: msgspec.Raw) -> Iterator[FieldError]:
    """Refuse policies that Muster does not know, as TrainJobs would run without them."""
    for name in sorted(set(decode(raw, _POLICY).spec.ml_policy or {}) - _POLICIES):
        known = ", ".join(sorted(_POLICIES - {"numNodes", "flux"}))
        message = f"must be left out: Muster knows {known}, and runs no other"
        yield FieldError(f"spec.mlPolicy.{name}", message, name, "NotSupported")

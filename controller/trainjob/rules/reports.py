"""Progress reports of trainers: their authorization and their content, by the protocol of Kubeflow's status server."""

import re
from http import HTTPStatus
from typing import Any, NamedTuple

import msgspec

from muster.api import names
from muster.api.base import Wire
from muster.api.kubeflow.trainer import GROUP, VERSION, TrainerStatus
from muster.api.kubernetes.reviews import TokenReviewStatus
from muster.api.muster.checkpoint import checkpoint_of

MAX_BYTES = 64 << 10
"""Maximum size of the body of a report, in bytes."""
FIELD_MANAGER = "trainer-status"
_BASE = f"{GROUP}/{VERSION}"
_PATH = re.compile(
    rf"/apis/{re.escape(_BASE)}/namespaces/(?P<namespace>[-a-z0-9]+)/trainjobs/(?P<name>[-a-z0-9]+)/status"
)
_SERVICE_ACCOUNT = "system:serviceaccount:"
_REASONS = {
    HTTPStatus.BAD_REQUEST: "BadRequest",
    HTTPStatus.UNAUTHORIZED: "Unauthorized",
    HTTPStatus.FORBIDDEN: "Forbidden",
    HTTPStatus.NOT_FOUND: "NotFound",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "RequestEntityTooLarge",
    HTTPStatus.UNPROCESSABLE_ENTITY: "Invalid",
    HTTPStatus.INTERNAL_SERVER_ERROR: "InternalError",
}


class ReportTarget(NamedTuple):
    """The TrainJob that a report is about."""

    namespace: str
    name: str

    @property
    def audience(self) -> str:
        """The audience of a token that is valid only for this TrainJob's status."""
        return f"{_BASE}/namespaces/{self.namespace}/trainjobs/{self.name}/status"


class ProgressReport(Wire):
    """The body of a report."""

    trainer_status: TrainerStatus | None = None


class RefusedError(Exception):
    """Error for a refused report; `status` is the HTTP code."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


def target_of(path: str) -> ReportTarget:
    """Return the TrainJob that the path of a request names."""
    found = _PATH.fullmatch(path)
    if found is None:
        raise RefusedError(
            HTTPStatus.NOT_FOUND, "only this request is served: POST /apis/…/namespaces/…/trainjobs/…/status"
        )
    return ReportTarget(found["namespace"], found["name"])


def token_of(header: str) -> str:
    """Return the token in an Authorization header."""
    scheme, _, token = header.partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise RefusedError(HTTPStatus.FORBIDDEN, "a report requires the token that is mounted into the pod")
    return token.strip()


def admit(review: TokenReviewStatus, target: ReportTarget) -> None:
    """Raise RefusedError unless the token was issued for this TrainJob in its own namespace."""
    if not review.authenticated or target.audience not in review.audiences:
        raise RefusedError(HTTPStatus.FORBIDDEN, f"the token was not issued for TrainJob {target.name}, or has expired")
    namespace = review.user.username.removeprefix(_SERVICE_ACCOUNT).partition(":")[0]
    if not review.user.username.startswith(_SERVICE_ACCOUNT) or namespace != target.namespace:
        raise RefusedError(HTTPStatus.FORBIDDEN, f"the token does not belong to namespace {target.namespace}")


def read(body: bytes) -> TrainerStatus | None:
    """Return the reported status; None for an empty report, which changes nothing."""
    try:
        return msgspec.json.decode(body or b"{}", type=ProgressReport).trainer_status
    except msgspec.ValidationError as error:
        raise RefusedError(HTTPStatus.UNPROCESSABLE_ENTITY, f"not a report: {error}") from error
    except msgspec.DecodeError as error:
        raise RefusedError(HTTPStatus.BAD_REQUEST, f"not JSON: {error}") from error


def checkpoint(status: TrainerStatus) -> str:
    """Return the checkpoint of a report, from the metric `muster.dev/checkpoint`; "" without this metric.

    Raise RefusedError if the checkpoint cannot be read, because the trainer would rely on it.
    """
    text = next((each.value for each in status.metrics if each.name == names.CHECKPOINT), "")
    if text and checkpoint_of(text) is None:
        why = f"metric {names.CHECKPOINT}: {text!r} is not a checkpoint such as step=1200,at=2026-11-26T05:00:00Z"
        raise RefusedError(HTTPStatus.UNPROCESSABLE_ENTITY, why)
    return text


def answer(refused: RefusedError) -> dict[str, Any]:
    """Return a rejection in the format of the API server (meta/v1 Status)."""
    reason = _REASONS.get(refused.status, refused.status.phrase.replace(" ", ""))
    body = {"status": "Failure", "message": str(refused), "reason": reason, "code": int(refused.status)}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, **body}

"""admission.k8s.io/v1: AdmissionReview; the reviewed object stays raw until the handler for its kind decodes it."""

from msgspec import Raw, field

from muster.api.base import Wire


class GroupVersionKind(Wire):
    """Kind of the object under review."""

    group: str = ""
    version: str = ""
    kind: str = ""


class UserInfo(Wire):
    """The user of a request, as authenticated by the API server."""

    username: str = ""
    uid: str = ""
    groups: list[str] = field(default_factory=list)
    extra: dict[str, list[str]] = field(default_factory=dict)
    """Additional attributes of the user's credential, such as scopes, which an authorizer may evaluate."""


def shared_name(username: str) -> str:
    """Return the name under which a user's usage is counted; the service accounts of a namespace share one name."""
    return username.rpartition(":")[0] if username.startswith("system:serviceaccount:") else username


class AdmissionRequest(Wire):
    """The request for one review; `namespace` is authoritative, because the object's own namespace may be empty."""

    uid: str
    kind: GroupVersionKind = field(default_factory=GroupVersionKind)
    name: str = ""
    namespace: str = ""
    operation: str = ""
    user_info: UserInfo = field(default_factory=UserInfo)
    object: Raw = field(default_factory=lambda: Raw(b"null"))
    old_object: Raw = field(default_factory=lambda: Raw(b"null"))
    dry_run: bool = False


class StatusCause(Wire):
    """One reason for a rejection."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(Wire):
    """The rejected object and all causes; kubectl prints `The <kind> "<name>" is invalid` and a line per cause."""

    name: str = ""
    group: str = ""
    kind: str = ""
    causes: list[StatusCause] = field(default_factory=list)


class ReviewStatus(Wire):
    """The status of a rejection, which is shown to the user."""

    message: str = ""
    reason: str = ""
    code: int = 0
    details: StatusDetails | None = None


class AdmissionResponse(Wire, omit_defaults=False):
    """The verdict of a review; `patch` is a JSON patch, encoded as base64."""

    uid: str
    allowed: bool
    status: ReviewStatus | None = None
    patch: str | None = None
    patch_type: str | None = None
    warnings: list[str] | None = None


class AdmissionReview(Wire, omit_defaults=False):
    """The envelope of a review's request and response."""

    api_version: str = "admission.k8s.io/v1"
    kind: str = "AdmissionReview"
    request: AdmissionRequest | None = None
    response: AdmissionResponse | None = None

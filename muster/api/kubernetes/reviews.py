"""TokenReview (authentication.k8s.io/v1) and SubjectAccessReview (authorization.k8s.io/v1), which are not stored."""

from dataclasses import replace

from msgspec import field

from muster.api.base import Resource, Wire
from muster.api.kubernetes.admission import UserInfo


class ResourceAttributes(Wire):
    """The action: a verb on one object. The namespace is empty for cluster-scoped objects."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""


class SubjectAccessReviewSpec(Wire):
    """The user and the action; a question about the sender itself names no user."""

    resource_attributes: ResourceAttributes
    user: str = ""
    groups: list[str] = field(default_factory=list)
    uid: str = ""
    extra: dict[str, list[str]] = field(default_factory=dict)


def may(user: UserInfo, action: ResourceAttributes) -> SubjectAccessReviewSpec:
    """Return the question if a user, with all attributes that an authorizer may use, has the right to an action."""
    return SubjectAccessReviewSpec(
        user=user.username, resource_attributes=action, groups=user.groups, uid=user.uid, extra=user.extra
    )


class SubjectAccessReviewStatus(Wire):
    """The answer of the cluster's authorizers."""

    allowed: bool = False
    reason: str = ""


class SubjectAccessReview(Wire):
    """The question, and the API server's answer. The review is not stored."""

    spec: SubjectAccessReviewSpec
    status: SubjectAccessReviewStatus = field(default_factory=SubjectAccessReviewStatus)


SUBJECT_ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", SubjectAccessReview, namespaced=False
)


SELF_SUBJECT_ACCESS_REVIEWS = replace(
    SUBJECT_ACCESS_REVIEWS, plural="selfsubjectaccessreviews", kind="SelfSubjectAccessReview"
)
"""A request for the sender's own right to an action, which all users may send."""


class TokenReviewSpec(Wire):
    """The token, and the audiences that it must be for."""

    token: str
    audiences: list[str] = field(default_factory=list)


class TokenReviewStatus(Wire):
    """The answer of the API server."""

    authenticated: bool = False
    user: UserInfo = field(default_factory=UserInfo)
    audiences: list[str] = field(default_factory=list)
    error: str = ""


class TokenReview(Wire):
    """The question, and the API server's answer. The review is not stored."""

    spec: TokenReviewSpec
    status: TokenReviewStatus = field(default_factory=TokenReviewStatus)


TOKEN_REVIEWS = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", TokenReview, namespaced=False)


class SelfSubjectReviewStatus(Wire):
    """The answer of the API server."""

    user_info: UserInfo = field(default_factory=UserInfo)


class SelfSubjectReview(Wire):
    """A request for the sender's own identity, with the API server's answer. The review is not stored."""

    status: SelfSubjectReviewStatus = field(default_factory=SelfSubjectReviewStatus)


SELF_SUBJECT_REVIEWS = Resource(
    "authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", SelfSubjectReview, namespaced=False
)

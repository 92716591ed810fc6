"""TokenReview (authentication.k8s.io/v1) and SubjectAccessReview (authorization.k8s.io/v1), which are not stored."""

from dataclasses import replace

from msgspec import field

from muster.api.base import Resource, Wire
from muster.api.kubernetes.admission import UserInfo


class ResourceAttributes(Wire):
    """The action under review: a verb on a resource or object. The namespace is empty for cluster-scoped objects."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""


class SubjectAccessReviewSpec(Wire):
    """The user and the action under review. A review of the sender's own rights names no user."""

    resource_attributes: ResourceAttributes
    user: str = ""
    groups: list[str] = field(default_factory=list)
    uid: str = ""
    extra: dict[str, list[str]] = field(default_factory=dict)


def may(user: UserInfo, action: ResourceAttributes) -> SubjectAccessReviewSpec:
    """Return the spec of a review: may this user, with all attributes of the credential, perform this action?"""
    return SubjectAccessReviewSpec(
        user=user.username, resource_attributes=action, groups=user.groups, uid=user.uid, extra=user.extra
    )


class SubjectAccessReviewStatus(Wire):
    """The decision of the cluster's authorizers."""

    allowed: bool = False
    reason: str = ""


class SubjectAccessReview(Wire):
    """A request to check a user's right to an action, and the API server's result. The review is not stored."""

    spec: SubjectAccessReviewSpec
    status: SubjectAccessReviewStatus = field(default_factory=SubjectAccessReviewStatus)


SUBJECT_ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", SubjectAccessReview, namespaced=False
)


SELF_SUBJECT_ACCESS_REVIEWS = replace(
    SUBJECT_ACCESS_REVIEWS, plural="selfsubjectaccessreviews", kind="SelfSubjectAccessReview"
)
"""A review of the sender's own right to an action; every user is allowed to request it."""


class TokenReviewSpec(Wire):
    """The token to verify, and the audiences for which it must be valid."""

    token: str
    audiences: list[str] = field(default_factory=list)


class TokenReviewStatus(Wire):
    """The result of the verification, with the user to whom the token belongs."""

    authenticated: bool = False
    user: UserInfo = field(default_factory=UserInfo)
    audiences: list[str] = field(default_factory=list)
    error: str = ""


class TokenReview(Wire):
    """A request to verify a token, and the API server's result. The review is not stored."""

    spec: TokenReviewSpec
    status: TokenReviewStatus = field(default_factory=TokenReviewStatus)


TOKEN_REVIEWS = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", TokenReview, namespaced=False)


class SelfSubjectReviewStatus(Wire):
    """The user that the API server has authenticated as the sender."""

    user_info: UserInfo = field(default_factory=UserInfo)


class SelfSubjectReview(Wire):
    """A request for the sender's own identity, with the API server's answer. The review is not stored."""

    status: SelfSubjectReviewStatus = field(default_factory=SelfSubjectReviewStatus)


SELF_SUBJECT_REVIEWS = Resource(
    "authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", SelfSubjectReview, namespaced=False
)

"""authorization.k8s.io/v1: SubjectAccessReview, the question whether a user may do something."""

from msgspec import field

from muster.api.base import Resource, Wire


class ResourceAttributes(Wire):
    """What he would do: a verb on one object. An empty namespace is that of what has none."""

    verb: str
    group: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""


class SubjectAccessReviewSpec(Wire):
    """Who would do what."""

    user: str
    resource_attributes: ResourceAttributes
    groups: list[str] = field(default_factory=list)
    uid: str = ""
    extra: dict[str, list[str]] = field(default_factory=dict)


class SubjectAccessReviewStatus(Wire):
    """The answer of the cluster's authorizers."""

    allowed: bool = False
    reason: str = ""


class SubjectAccessReview(Wire):
    """The question, and the answer once the API server has it. It is not stored."""

    spec: SubjectAccessReviewSpec
    status: SubjectAccessReviewStatus = field(default_factory=SubjectAccessReviewStatus)


SUBJECT_ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", SubjectAccessReview, namespaced=False
)

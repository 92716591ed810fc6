"""authentication.k8s.io/v1: TokenReview, which asks for the owner of a token."""

from msgspec import field

from muster.api.base import Resource, Wire


class TokenReviewSpec(Wire):
    """The token, and the audiences that it must be for."""

    token: str
    audiences: list[str] = field(default_factory=list)


class TokenUser(Wire):
    """The owner of the token."""

    username: str = ""
    uid: str = ""
    groups: list[str] = field(default_factory=list)


class TokenReviewStatus(Wire):
    """The answer of the API server."""

    authenticated: bool = False
    user: TokenUser = field(default_factory=TokenUser)
    audiences: list[str] = field(default_factory=list)
    error: str = ""


class TokenReview(Wire):
    """The question, and the API server's answer. It is not stored."""

    spec: TokenReviewSpec
    status: TokenReviewStatus = field(default_factory=TokenReviewStatus)


TOKEN_REVIEWS = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", TokenReview, namespaced=False)

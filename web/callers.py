"""Users of the web page in a cluster: each request carries the user's own token, which the API server checks.

The API server also decides what a user may see. Each user's rights are checked for the whole cluster first, then for
each namespace with gangs. Only a hash of a token is stored, for a minute.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from http import HTTPStatus
from threading import BoundedSemaphore
from typing import Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from history.model import EVERYTHING
from muster.api.kubernetes import admission, core, reviews
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES
from muster.kube.client import Client
from muster.kube.config import ClientConfig
from web.caches import PageCaches
from web.rights import Remembered, digest_of, listing
from web.view import Caller

COOKIE: Final = "__Host-muster"
"""Name of the cookie with the token. Because of the name's prefix, browsers accept the cookie only from this host and
over TLS."""
FORWARDED: Final = "x-forwarded-access-token"
"""Header in which oauth2-proxy passes the token of a signed-in user."""
TOKEN_BYTES: Final = 3800
"""Maximum length of a token in bytes, because browsers do not store longer cookies."""
NAMESPACES: Final = 1000
"""Maximum number of namespaces in which one user's rights are checked; namespaces with gangs come first. Each namespace
costs one request to the API server per minute."""
_AT_ONCE: Final = 8
"""Maximum number of namespaces in which rights are checked at the same time, for all users together."""
_PATIENCE_S: Final = 5.0
"""Maximum time in seconds that a token waits to be checked, so that senders of invalid tokens do not block others for
long."""
_HOW: Final = "send your token as `Authorization: Bearer`, or sign in at /signin"


class TokenCallers:
    """Identification of callers by their tokens.

    If `forwarded` is true, a proxy that clients cannot bypass sends the tokens.
    """

    def __init__(self, client: Client, config: ClientConfig, caches: PageCaches, *, forwarded: bool = False) -> None:
        self._client = client
        self._config = config
        self._caches = caches
        self._forwarded = forwarded
        self.past: Callable[[], Iterable[str]] = lambda: ()
        """Function that returns the namespaces in the history, which may no longer have gangs."""
        self._answers, self._rights = Remembered(), Remembered()
        self._slots = BoundedSemaphore(_AT_ONCE)
        self._asking = ThreadPoolExecutor(_AT_ONCE, "rights")

    def credentials_of(self, request: Request) -> str:
        """Return the digest of a request's token, without a check of the token."""
        return digest_of(self._token(request))

    def account_of(self, request: Request) -> str:
        """Return the account of a request's token. Raises HTTPException 401 for an invalid token."""
        return admission.shared_name(self._user(self._token(request)).username)

    def caller_of(self, request: Request) -> Caller:
        """Return the user of a request's token.

        Raises HTTPException 401 for an invalid token, and 403 if the user is not allowed to see anything.
        """
        token = self._token(request)
        user = self._user(token)
        account = admission.shared_name(user.username)
        return self._answers.answer(("caller", digest_of(token)), lambda: self._caller(user), account)

    def with_key(self, request: Request) -> Response | None:
        """Return None, because in a cluster no URL signs a user in."""
        _ = request
        return None

    def signed_in(self, token: str) -> Response:
        """Return the response to a form with a token, which sets a cookie with the token.

        Raises HTTPException for an invalid token.
        """
        token = token.strip()
        if len(token) > TOKEN_BYTES:
            why = f"a browser keeps no token of more than {TOKEN_BYTES} bytes: use oauth2-proxy in front of this page"
            raise HTTPException(HTTPStatus.BAD_REQUEST, why)
        self._user(token)
        answer = RedirectResponse("/", HTTPStatus.SEE_OTHER)
        answer.set_cookie(COOKIE, token, secure=True, httponly=True, samesite="strict", path="/")
        return answer

    def signed_out(self) -> Response:
        """Return a response that deletes the token's cookie."""
        answer = RedirectResponse("/signin", HTTPStatus.SEE_OTHER)
        answer.delete_cookie(COOKIE, path="/", secure=True, httponly=True, samesite="strict")
        return answer

    def may(self, request: Request, right: reviews.ResourceAttributes) -> bool:
        """Return True if the caller has a right."""
        return self._may(self._user(self._token(request)), right)

    def client_of(self, request: Request) -> AbstractContextManager[Client]:
        """Return a client that uses only the caller's token."""
        token = self._token(request)
        self._user(token)
        header = f"Bearer {token}"
        return closing(Client(replace(self._config, authorization=lambda: header), connections=4))

    def close(self) -> None:
        """Stop all checks."""
        self._asking.shutdown(wait=False, cancel_futures=True)

    def _token(self, request: Request) -> str:
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and given.strip():
            return given.strip()
        if self._forwarded and (given := request.headers.get(FORWARDED, "")):
            return given
        if given := request.cookies.get(COOKIE, ""):
            return given
        raise _unauthorized(_HOW)

    def _user(self, token: str) -> admission.UserInfo:
        """Ask the API server for the user of a token."""
        if not token.isascii() or not token.isprintable():
            raise _unauthorized(f"this is not a token; {_HOW}")
        return self._answers.answer(("user", digest_of(token)), lambda: self._reviewed(token))

    def _reviewed(self, token: str) -> admission.UserInfo:
        if not self._slots.acquire(timeout=_PATIENCE_S):
            raise HTTPException(HTTPStatus.TOO_MANY_REQUESTS, "too many users sign in at this moment: try again")
        try:
            status = self._client.create(
                reviews.TOKEN_REVIEWS, reviews.TokenReview(spec=reviews.TokenReviewSpec(token=token))
            ).status
        finally:
            self._slots.release()
        if not status.authenticated:
            raise _unauthorized(f"the cluster does not accept this token, which may have expired; {_HOW}")
        return status.user

    def _caller(self, user: admission.UserInfo) -> Caller:
        everywhere = all(self._may(user, listing(kind)) for kind in (POD_GROUPS, core.PODS))
        scope = EVERYTHING if everywhere else self._caches.scope_of(self._namespaces(user))
        nodes, queues = self._may(user, listing(core.NODES)), self._may(user, listing(QUEUES))
        if not (everywhere or scope.namespaces or nodes or queues):
            raise HTTPException(
                HTTPStatus.FORBIDDEN,
                f"{user.username} may not list the gangs (podgroups.scheduling.volcano.sh) of any namespace that has "
                "gangs: ask its administrator for the ClusterRole muster-view or muster-edit in a RoleBinding there; "
                "or, with that role in a namespace without a gang, try again a minute after the first gang was created",
            )
        return Caller(name=user.username, scope=scope, nodes=nodes, queues=queues)

    def _namespaces(self, user: admission.UserInfo) -> Iterable[str]:
        """Return the namespaces, current or past, in which the caller may list gangs and pods."""

        def may(namespace: str) -> bool:
            return all(self._may(user, listing(kind, namespace)) for kind in (POD_GROUPS, core.PODS))

        now = self._caches.namespaces()
        past = self._answers.answer("past", lambda: sorted({*self.past()}))
        asked = [*now, *(name for name in past if name not in {*now})][:NAMESPACES]
        return [name for name, yes in zip(asked, self._asking.map(may, asked), strict=True) if yes]

    def _may(self, user: admission.UserInfo, right: reviews.ResourceAttributes) -> bool:
        question = (user.username, user.uid, *user.groups, str(user.extra), msgspec.json.encode(right))
        return self._rights.answer(
            question, lambda: self._reviewed_right(user, right), admission.shared_name(user.username)
        )

    def _reviewed_right(self, user: admission.UserInfo, right: reviews.ResourceAttributes) -> bool:
        asked = reviews.SubjectAccessReview(spec=reviews.may(user, right))
        return self._client.create(reviews.SUBJECT_ACCESS_REVIEWS, asked).status.allowed


def _unauthorized(why: str) -> HTTPException:
    return HTTPException(HTTPStatus.UNAUTHORIZED, why, {"www-authenticate": "Bearer"})

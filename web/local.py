"""The web page on loopback, for the user who has started the page, with the rights of the user's kubeconfig.

Other users of the machine can also connect to the page. Therefore the printed URL contains a key, which a cookie
stores.
"""

import hmac
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from http import HTTPStatus
from typing import Any, Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from extender.planner.api import FEED
from history.model import EVERYTHING, Scope
from muster.api.base import Resource
from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.kubernetes import core, reviews
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES
from muster.kube.client import Client
from muster.kube.errors import APIError
from web.caches import ListableScope
from web.rights import Remembered, listing, may_i
from web.view import Caller

KEY: Final = "key"
Reaches = Mapping[Resource[Any], ListableScope]
_KINDS: Final = (*(fed.resource for fed in FEED), TRAIN_JOBS)


def reach_of(client: Client, namespace: str) -> Reaches:
    """Return where the client's user may list and watch each kind: in the whole cluster, in `namespace`, or nowhere."""

    def may(resource: Resource[Any], where: str) -> bool:
        return all(may_i(client, listing(resource, where, verb)) for verb in ("list", "watch"))

    found = dict[Resource[Any], ListableScope]()
    for resource in _KINDS:
        everywhere = may(resource, "")
        found[resource] = ListableScope(everywhere, everywhere or (resource.namespaced and may(resource, namespace)))
    return found


class LocalCallers:
    """Identification of the only user of a local page, by the key in the URL."""

    def __init__(self, client: Client, key: str, port: int, namespace: str, reach: Reaches) -> None:
        self._client = client
        self._key = key
        self._cookie = f"muster-{port}"
        self._namespace = namespace
        self._reach = reach
        self._answers = Remembered()

    def credentials_of(self, request: Request) -> str:
        """Return an empty text, because the page has only one caller."""
        _ = request
        return ""

    def account_of(self, request: Request) -> str:
        """Return the account of the page's only user. Raises HTTPException for a request without the key."""
        return self.caller_of(request).account

    def caller_of(self, request: Request) -> Caller:
        """Return the user who has started the page, with the user's rights.

        Raises HTTPException for a request without the key, or if the user is no longer allowed to see anything.
        """
        if not hmac.compare_digest(request.cookies.get(self._cookie, "").encode(), self._key.encode()):
            raise HTTPException(
                HTTPStatus.UNAUTHORIZED,
                "this page is only for the user of `muster web`: open the URL that it has printed, with its key",
            )
        return self._answers.answer("caller", self._caller)

    def with_key(self, request: Request) -> Response | None:
        """Return a redirect from a URL with the key to the same page, with a cookie; None for other URLs."""
        given = request.query_params.get(KEY)
        if given is None or not hmac.compare_digest(given.encode(), self._key.encode()):
            return None
        answer = RedirectResponse(request.url.path, HTTPStatus.SEE_OTHER)
        answer.set_cookie(self._cookie, self._key, httponly=True, samesite="strict")
        return answer

    def may(self, request: Request, right: reviews.ResourceAttributes) -> bool:
        """Return True if the user who has started the page has a right."""
        self.caller_of(request)
        return self._answers.answer(msgspec.json.encode(right), lambda: may_i(self._client, right))

    def client_of(self, request: Request) -> AbstractContextManager[Client]:
        """Return the client for the kubeconfig; the client is shared, so it must not be closed."""
        self.caller_of(request)
        return nullcontext(self._client)

    def _caller(self) -> Caller:
        everywhere = self._reach[POD_GROUPS].everywhere and may_i(self._client, listing(POD_GROUPS))
        namespace = self._namespace
        if not everywhere and not may_i(self._client, listing(POD_GROUPS, namespace)):
            raise HTTPException(
                HTTPStatus.FORBIDDEN,
                f"you may not list the gangs of namespace {namespace}: ask its administrator for the ClusterRole "
                "muster-view or muster-edit in a RoleBinding there",
            )
        return Caller(
            scope=EVERYTHING if everywhere else self._scope(),
            nodes=self._reach[core.NODES].everywhere and may_i(self._client, listing(core.NODES)),
            queues=self._reach[QUEUES].everywhere and may_i(self._client, listing(QUEUES)),
        )

    def _scope(self) -> Scope:
        """Return the scope of the only namespace, from the namespace's creation on.

        Earlier data may belong to another tenant, whose namespace had the same name.
        """
        try:
            created = self._client.get(core.NAMESPACES, self._namespace).metadata.creation_timestamp
        except APIError:  # without the right to get the namespace, its past stays hidden
            created = None
        return Scope.from_creation({self._namespace: created}, time.time())

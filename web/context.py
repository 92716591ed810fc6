"""Request for a page, and the response as HTML or JSON."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from muster.api.kubernetes.reviews import ResourceAttributes
from muster.kube.client import Client
from web.view import Caller, View

if TYPE_CHECKING:
    from web.site import Site


@dataclass(frozen=True)
class RequestContext:
    """A request of an identified caller. `form` has the submitted fields of the form if the method is POST."""

    site: "Site"
    request: Request
    caller: Caller
    form: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def view(self) -> View:
        """The part of the cluster that the caller may see."""
        return View(self.site.caches, self.caller)

    @property
    def query(self) -> QueryParams:
        """Return the query parameters of the URL."""
        return self.request.query_params

    @property
    def path(self) -> Mapping[str, str]:
        """Return the values in the path, by their names in the route."""
        return self.request.path_params

    @property
    def url(self) -> str:
        """Return the path and query, for a link to this page."""
        url = self.request.url
        return f"{url.path}?{url.query}" if url.query else url.path

    def page(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """Return a page from a template, which can also use `context`, `caller` and `pages` (the navigation)."""
        html = self.site.render(template, context=self, caller=self.caller, **values)
        return HTMLResponse(html, status)

    def json(self, content: object) -> Response:
        """Return data in the format of the commands' `-o json`."""
        text = msgspec.json.format(msgspec.json.encode(content)) + b"\n"
        return Response(text, media_type="application/json")

    def client(self) -> AbstractContextManager[Client]:
        """Return a client that acts as the caller, with only the caller's rights, for a `with` block."""
        return self.site.callers.client_of(self.request)

    def may(self, right: ResourceAttributes) -> bool:
        """Return True if the caller has a right."""
        return self.site.callers.may(self.request, right)

    def refused(self, why: str) -> HTTPException:
        """Return the HTTP error for an invalid request."""
        return HTTPException(HTTPStatus.BAD_REQUEST, why)

    def forbidden(self, why: str) -> HTTPException:
        """Return the HTTP error for a missing right; the message names this right."""
        return HTTPException(HTTPStatus.FORBIDDEN, why)

    def missing(self, what: str) -> HTTPException:
        """Return the HTTP error for an object that does not exist or that is not visible to the caller.

        The text is the same in both cases, so that it does not reveal which objects exist.
        """
        return HTTPException(HTTPStatus.NOT_FOUND, f"there is no {what}, or you may not see it")

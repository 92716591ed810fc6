"""What a server of pages holds: caches, who asks, templates."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import Response

from extender.explain.clusterdump import ClusterDump
from history.store import Store
from history.usage import Row
from muster.api.kubernetes.reviews import ResourceAttributes
from muster.api.muster.usage import PERIODS, Period
from muster.kube.client import Client
from web.aged import Aged
from web.assets import Assets
from web.caches import Caches
from web.caller import Caller
from web.explainer import Explainer
from web.forecasts import Forecasts

HERE: Final = Path(__file__).parent


class Callers(Protocol):
    """Says who sends a request."""

    signs_in: bool
    """True where users sign in with a token."""

    def caller_of(self, request: Request) -> Caller:
        """Return the caller; HTTPException 401 for one who is not known. May wait: for threads."""

    def may(self, request: Request, right: ResourceAttributes) -> bool:
        """Return True if the caller has a right."""

    def client_of(self, request: Request) -> Client:
        """Return a client that acts as the caller, for `give_back`."""

    def give_back(self, client: Client) -> None:
        """Take a client back that is not needed any more."""

    def signed_in(self, token: str) -> Response:
        """Return the answer to a form with a token; HTTPException for one that does not count."""

    def signed_out(self) -> Response:
        """Return the answer that has the browser forget the token."""

    def with_key(self, request: Request) -> Response | None:
        """Return the answer to a URL that signs its user in; None for other URLs."""


class Site:
    """One server of pages."""

    def __init__(
        self,
        caches: Caches,
        callers: Callers,
        *,
        history: Store | None = None,
        prepare: Callable[[ClusterDump], None] = lambda _: None,
        now: Callable[[], float] = time.time,
        not_ready: Callable[[], str | None] | None = None,
    ) -> None:
        self.caches = caches
        self.callers = callers
        self.explainer = Explainer(caches, prepare)
        self.forecasts = Forecasts(caches, now)
        self.not_ready = not_ready or caches.not_ready
        """A sentence while there is nothing to show yet, or nothing that is current."""
        self.now = now
        """The time of day, in seconds since the epoch."""
        self.history = history
        """The store of the history; None without one."""
        self.nodes: Aged[Any] = Aged()
        """What is free on the nodes, which takes long to add up."""
        self.spent: dict[Period, Aged[list[Row]]] = {period: Aged() for period in PERIODS}
        """What queues have used in the periods of budgets."""
        self.closing = False
        """True once the server stops: streams end then."""
        self.assets = Assets(HERE / "static")
        self._templates = Environment(
            loader=FileSystemLoader(HERE / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.globals |= {"assets": self.assets, "signs_in": callers.signs_in}

    def close(self) -> None:
        """End the streams in a moment, so that the server can stop."""
        self.closing = True

    def knows(self, **values: Any) -> None:
        """Have all templates know these values: filters of pages, the table of the navigation."""
        self._templates.globals |= values

    def render(self, template: str, **context: Any) -> str:
        """Return the text of a template; everything in it is escaped that is not HTML of the templates."""
        return self._templates.get_template(template).render(context)

"""State of a web page's server: caches, callers, forecasts, templates, style and scripts."""

import base64
import hashlib
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cached_property, partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, Protocol, runtime_checkable

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from msgspec import structs
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from extender.explain.clusterdump import ClusterDump
from gangs import forecast
from gangs.row import GangRow
from history.store import HistoryStore
from history.usage import UsageRow
from muster.api.kubernetes.core import NODES
from muster.api.kubernetes.reviews import ResourceAttributes
from muster.api.muster.usage import PERIODS, Period
from muster.kube.client import Client
from web.caches import PageCaches
from web.explainer import Explainer
from web.slow import StaleWhileRevalidate, Threads
from web.view import Caller

HERE: Final = Path(__file__).parent
LIVE: Final = ("vendor/htmx.min.js", "vendor/sse.min.js")
"""The scripts of live updates, which `make setup` downloads from npm; pages work without these scripts."""
Gang = tuple[str, str]
"""Namespace and name of a PodGroup."""


class Callers(Protocol):
    """Identification of the users who send requests, and checks of the users' rights."""

    def credentials_of(self, request: Request) -> str:
        """Return a key that identifies a request's credentials, without a check of the credentials.

        Raises HTTPException 401 if the request has no credentials.
        """

    def account_of(self, request: Request) -> str:
        """Return the account of the caller. Raises HTTPException 401 for an unknown caller.

        The method may block, so call it in a thread.
        """

    def caller_of(self, request: Request) -> Caller:
        """Return the caller with the caller's rights.

        Raises HTTPException 401 for an unknown caller, and 403 if the caller may see nothing. The method may block for
        seconds.
        """

    def may(self, request: Request, right: ResourceAttributes) -> bool:
        """Return True if the caller has a right."""

    def client_of(self, request: Request) -> AbstractContextManager[Client]:
        """Return a client that acts as the caller."""

    def with_key(self, request: Request) -> Response | None:
        """Return the response to a URL that signs the user in; None for other URLs."""


async def account_of(callers: Callers, request: Request, threads: Threads) -> str:
    """Return the caller's account.

    For one token, at most a few threads identify the caller at the same time. All other work for a request is limited
    to a few threads per account.
    """
    return await threads.run(callers.credentials_of(request), partial(callers.account_of, request))


@runtime_checkable
class SigningIn(Callers, Protocol):
    """Identification of callers who sign in with a token."""

    def signed_in(self, token: str) -> Response:
        """Return the response to the sign-in form with a token. Raises HTTPException for an invalid token."""

    def signed_out(self) -> Response:
        """Return the response that deletes the token's cookie."""


class Assets:
    """The static files of a directory, such as style and scripts, each read once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def integrity(self, name: str) -> str:
        """Return the hash of a file for the HTML attribute `integrity`."""
        digest = hashlib.sha384((self.folder / name).read_bytes()).digest()
        return f"sha384-{base64.b64encode(digest).decode()}"

    @cached_property
    def live(self) -> bool:
        """Return True if the scripts of live updates are installed."""
        return all((self.folder / name).is_file() for name in LIVE)

    @cached_property
    def scripts(self) -> Markup:
        """Return the HTML elements that load the scripts; "" if the scripts are not installed."""
        return Markup("\n").join(
            Markup('<script src="/static/{}" integrity="{}" defer></script>').format(name, self.integrity(name))
            for name in (LIVE if self.live else ())
        )

    @cached_property
    def style(self) -> Markup:
        """Return the HTML element that loads the style sheet."""
        name = "muster.css"
        return Markup('<link rel="stylesheet" href="/static/{}" integrity="{}">').format(name, self.integrity(name))


class Forecasts:
    """Cache of all waiting gangs' expected starts, which may be a few seconds old if there are thousands of gangs."""

    def __init__(self, caches: PageCaches, now: Callable[[], float]) -> None:
        self._caches = caches
        self._now = now
        self._known: StaleWhileRevalidate[dict[Gang, GangRow]] = StaleWhileRevalidate()

    def with_forecasts(self, gangs: Sequence[GangRow]) -> list[GangRow]:
        """Return the rows of gangs; the row of a waiting gang gets the interval of the expected start, if it is known.

        The intervals are computed from gangs of all namespaces, so only callers who may see all namespaces get them.
        """
        known = self._known.value(self._caches.total, self._played)
        return [_with(row, known.get((row.namespace, row.gang))) for row in gangs]

    def _played(self) -> dict[Gang, GangRow]:
        gangs = [row for each in self._caches.namespaces() for row in self._caches.rows(each)]
        cluster = forecast.ForecastCluster(self._caches.whole(), self._caches.all(NODES))
        played = forecast.with_starts(gangs, cluster, self._now())
        return {(row.namespace, row.gang): row for row in played if row.earliest_start}


def _with(row: GangRow, known: GangRow | None) -> GangRow:
    """Return a gang's row with the expected start, unless the gang has started in the meantime."""
    if known is None or known.state != row.state or row.expected_start:
        return row
    return structs.replace(
        row,
        earliest_start=known.earliest_start,
        latest_start=known.latest_start,
        start_known_by=known.start_known_by,
    )


class Site:
    """State of the server, which all pages share."""

    def __init__(
        self,
        caches: PageCaches,
        callers: Callers,
        *,
        history: HistoryStore | None = None,
        prepare: Callable[[ClusterDump], None] = lambda _: None,
        now: Callable[[], float] = time.time,
        not_ready: Callable[[], str | None] | None = None,
    ) -> None:
        self.caches = caches
        self.callers = callers
        self.explainer = Explainer(caches, prepare)
        self.forecasts = Forecasts(caches, now)
        self.not_ready = not_ready or caches.not_ready
        """Function that returns a message while there is no current data to show, otherwise None."""
        self.now = now
        """Function that returns the current time in seconds since the epoch."""
        self.history = history
        """The store of the history; None if there is no history."""
        self.nodes: StaleWhileRevalidate[Any] = StaleWhileRevalidate()
        """Cache of the nodes' free capacity, which is slow to compute."""
        self.spent: dict[Period, StaleWhileRevalidate[list[UsageRow]]] = {
            period: StaleWhileRevalidate() for period in PERIODS
        }
        """Usage of each queue in the periods of the usage budgets."""
        self.closing = False
        """True once the server is being stopped, so that streams end."""
        self.assets = Assets(HERE / "static")
        self._templates = Environment(
            loader=FileSystemLoader(HERE / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.globals |= {"assets": self.assets, "signs_in": isinstance(callers, SigningIn)}

    def require_ready(self) -> None:
        """Raise HTTPException 503 while the caches are not filled, because callers' rights are not known yet."""
        if why := self.not_ready():
            raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, f"try again in a moment: {why}", {"retry-after": "2"})

    def close(self) -> None:
        """Let the streams end at their next check, so that the server can stop."""
        self.closing = True

    def add_globals(self, **values: Any) -> None:
        """Make the given values available to all templates, such as the navigation table."""
        self._templates.globals |= values

    def render(self, template: str, **context: Any) -> str:
        """Return the text of a template, in which all values are escaped."""
        return self._templates.get_template(template).render(context)

"""Client of the web page in the cluster, for explanations, history and usage that users cannot read directly."""

import ssl
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import click
import msgspec

from extender.explain.report import GangReport, PodReport
from muster.kube.client import Client
from muster.kube.config import ClientConfig
from muster.process.hosts import is_loopback
from musterctl.cluster import Where

_S = 60.0
"""Timeout of a request in seconds. A report takes seconds in a large cluster, and may wait for other users' reports."""


class WebServer(NamedTuple):
    """The URL of the web page, and the authority of the page's certificate, by default the system's authorities."""

    url: str
    authority: Path | None = None

    def explain(self, where: Where, kind: str, namespace: str, name: str) -> GangReport | PodReport:
        """Return a report that the server has created.

        Raise ClickException if the server does not answer, and APIError if the server refuses the request.
        """
        path = f"/api/explain/{quote(namespace, safe='')}/{quote(name, safe='')}"
        wanted: Any = PodReport if kind == "pod" else GangReport
        return self.get(where, path, {"kind": kind}, wanted)  # type: ignore[no-any-return] # one of the two

    def get(self, where: Where, path: str, query: Mapping[str, str], wanted: Any) -> Any:
        """Return the answer of the web page's server, decoded as the type `wanted`.

        Raise ClickException if the server does not answer, and APIError if the server refuses the request.
        """
        with closing(self._client(where)) as client:
            answer = client.request("GET", path, query=dict(query), timeout_s=_S)
        try:
            return msgspec.json.decode(answer, type=wanted)
        except msgspec.DecodeError as error:
            raise click.ClickException(f"{self.url} is not a web page of this version of Muster: {error}") from error

    def _client(self, where: Where) -> Client:
        parts = urlsplit(self.url)
        if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
            raise click.UsageError(f"--server {self.url}: your token is only sent over https://")
        header = where.config().authorization
        if header is None:
            raise click.ClickException(
                "your kubeconfig has no token, by which the page identifies its users: "
                "use a kubeconfig with a token, or ask an administrator for the right to list the cluster"
            )
        try:
            tls = ssl.create_default_context(cafile=self.authority) if parts.scheme == "https" else None
        except OSError as error:
            raise click.UsageError(f"--server-ca {self.authority}: the file contains no certificate (PEM)") from error
        return Client(ClientConfig(self.url.rstrip("/"), tls=tls, authorization=header))

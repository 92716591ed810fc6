"""Who may call the extender: its kube-scheduler, and no browser that somebody leads there.

Over TLS, who has no client certificate does not get as far as this. Over plain HTTP, which is on loopback only, calls
are not authenticated: a process on the same machine can call. A web page that is open there must not: it can send forms
and plain text anywhere, and reach loopback under a name of its own (DNS rebinding), but it cannot send JSON elsewhere
without being asked about it first, nor choose the headers `Host` and `Origin`.
"""

from collections.abc import Container
from http import HTTPStatus

from muster.process.loopback import host_of, is_loopback

CONTENT_TYPE = "application/json"
Refusal = tuple[HTTPStatus, str]


def refusal(
    method: str, host: str, content_type: str, headers: Container[str], *, authenticated: bool
) -> Refusal | None:
    """Why a call is not answered, as a status and a sentence; None for one that kube-scheduler can have made.

    `host` and `content_type` are what the headers of these names say, `headers` the lower-case names of all. A caller
    that is `authenticated`, by its client certificate, may call the extender by any name.
    """
    if not authenticated and not is_loopback(host_of(host)):
        return (
            HTTPStatus.FORBIDDEN,
            "call the extender by a loopback address, e.g. 127.0.0.1, as the header Host says it",
        )
    if "origin" in headers:
        return HTTPStatus.FORBIDDEN, "the extender answers kube-scheduler, no web pages: leave out the header Origin"
    if method == "POST" and content_type.partition(";")[0].strip().lower() != CONTENT_TYPE:
        return HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"send the body as {CONTENT_TYPE}"
    return None

"""The command line of the webhook process: what differs from pod to pod, and its settings."""

from collections.abc import Sequence
from dataclasses import dataclass

from muster.process import settings
from webhook.settings import WebhookSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """A field for each flag; their help is in the table below."""

    kubeconfig: str
    host: str
    settings: WebhookSettings


def parse(argv: Sequence[str] | None = None) -> Options:
    """Reads the arguments, by default those of this process; what is wrong with them ends it with code 2."""
    parser = settings.parser_of("webhook", "Muster's admission webhook.")
    add = parser.add_argument
    add("--kubeconfig", default="", help="how to reach the API server; empty means in-cluster")
    add("--host", default="127.0.0.1", help="address to listen on, of both ports [default: %(default)s]")
    return Options(**settings.parse(parser, argv, WebhookSettings))

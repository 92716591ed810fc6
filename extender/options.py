"""The command line of the extender process: what differs from pod to pod, and its settings."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from extender.settings import ExtenderSettings
from muster.process import settings
from muster.process.health import is_loopback


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """A field for each flag; their help is in the table below."""

    kubeconfig: str
    host: str
    status_host: str
    identity_prefix: str
    settings: ExtenderSettings


def parse(argv: Sequence[str] | None = None) -> Options:
    """Reads the arguments, by default those of this process; what is wrong with them ends it with code 2."""
    parser = settings.parser_of("extender", "Muster's scheduler extender and planner.")
    add = parser.add_argument
    add("--kubeconfig", default="", help="empty: the pod's own credentials")
    add("--host", default="127.0.0.1", help="address of the verbs; without TLS a loopback one [default: %(default)s]")
    add("--status-host", default="127.0.0.1", help="address of the status port [default: %(default)s]")
    add("--identity-prefix", default="", help="how the Lease's holder begins; empty: <hostname>_")
    given = settings.parse(parser, argv, ExtenderSettings)
    if given["settings"].tls is None and not is_loopback(given["host"]):
        parser.error(
            f"--host: {given['host']!r} is not a loopback address. Without TLS calls are not authenticated, so whoever"
            " reaches this port could bind pods. Run the extender in the pod of its kube-scheduler and leave 127.0.0.1,"
            " or name certFile, keyFile and clientCaFile in the file of --settings (docs/certificates.md)."
        )
    # kube-scheduler's identity in its Lease is "<host name>_<uuid>", and a pod's containers share one host name.
    return Options(**{**given, "identity_prefix": given["identity_prefix"] or f"{os.uname().nodename}_"})

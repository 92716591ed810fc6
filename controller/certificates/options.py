"""The flags about certificates, and what they say as one frozen value."""

import argparse
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final, Literal

from certs.rotation import Terms, Wanted
from muster.api import names
from muster.resources.duration import parse_duration_s

_LONGEST_S: Final = 100 * 365 * 86400.0
SERVING: Final = "tls"
"""The name of the webhook's certificate in the Secret: tls.crt and tls.key."""
REPORTS: Final = "reports"
"""The name of the certificate of the TrainJobs' status server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateOptions:
    """Which Secret to look after, and how; help is in the table below."""

    secret: str
    issuer: Literal["own", "external"]
    configurations: tuple[str, ...]
    """Names of webhook configurations, of both kinds each."""
    wanted: tuple[Wanted, ...]
    terms: Terms


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of this module."""
    group = parser.add_argument_group("certificates of the webhook")
    add = group.add_argument
    add(
        "--cert-secret",
        default="",
        metavar="NAME",
        help="their Secret, beside the Lease; empty: somebody else's affair",
    )
    add(
        "--cert-issuer",
        choices=("own", "external"),
        default="own",
        help="own: make and renew them; external: only watch over what, say, cert-manager makes [default: %(default)s]",
    )
    add(
        "--cert-dns-name",
        action="append",
        default=[],
        metavar="NAME",
        help="host name or address of the webhook, as the webhook configurations have it; may be repeated",
    )
    add(
        "--cert-report-dns-name",
        action="append",
        default=[],
        metavar="NAME",
        help="as pods reach the status server of TrainJobs: a certificate for it, too (reports.crt); may be repeated",
    )
    add(
        "--cert-webhooks",
        action="append",
        default=[],
        metavar="NAME",
        help=f"name of webhook configurations that get the caBundle; may be repeated [default: {names.WEBHOOKS}]",
    )
    for flag, default, what in (
        ("--cert-lifetime", "2160h", "life of a certificate; it is renewed after two thirds of it"),
        ("--cert-authority-lifetime", "8760h", "life of an authority; the next one comes after two thirds of it"),
        ("--cert-trust-wait", "30s", "until all API servers have taken up a new caBundle"),
        ("--cert-load-wait", "10m", "until all replicas show what stands in the Secret"),
    ):
        add(flag, type=_duration, default=default, metavar="DURATION", help=f"{what} [default: %(default)s]")


def take_flags(given: dict[str, object], error: Callable[[str], object]) -> CertificateOptions | None:
    """What they say, taken out of all that was given; None without a Secret. What does not fit is told to `error`."""
    taken = {name: given.pop(name) for name in [name for name in given if name.startswith("cert_")]}
    if not taken["cert_secret"]:
        return None
    chosen = argparse.Namespace(**taken)
    terms = Terms(
        authority_life_s=chosen.cert_authority_lifetime,
        life_s=chosen.cert_lifetime,
        trust_wait_s=chosen.cert_trust_wait,
        load_wait_s=chosen.cert_load_wait,
    )
    for problem in _problems(chosen, terms):
        error(problem)
    wanted = [Wanted(name=SERVING, common_name="muster-webhook", names=_hosts(chosen.cert_dns_name), server=True)]
    if chosen.cert_report_dns_name:
        hosts = _hosts(chosen.cert_report_dns_name)
        wanted.append(Wanted(name=REPORTS, common_name="muster-reports", names=hosts, server=True))
    return CertificateOptions(
        secret=chosen.cert_secret,
        issuer=chosen.cert_issuer,
        configurations=tuple(chosen.cert_webhooks) or (names.WEBHOOKS,),
        wanted=tuple(wanted),
        terms=terms,
    )


def _problems(chosen: argparse.Namespace, terms: Terms) -> Iterable[str]:
    if chosen.cert_issuer == "own" and not chosen.cert_dns_name:
        yield "--cert-dns-name: name the webhook, e.g. muster-webhook.muster-system.svc"
    waits_s = terms.trust_wait_s + terms.load_wait_s
    for flag, life_s in (("--cert-lifetime", terms.life_s), ("--cert-authority-lifetime", terms.authority_life_s)):
        if life_s / 3 <= waits_s:
            yield f"{flag}: the last third of it must be longer than --cert-trust-wait and --cert-load-wait together"
        if life_s > _LONGEST_S:
            yield f"{flag}: at most a hundred years (876000h)"


def _duration(text: str) -> float:
    try:
        return parse_duration_s(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _hosts(given: Iterable[str]) -> frozenset[str]:
    return frozenset(map(_normal, given))


def _normal(name: str) -> str:
    """An address as certificates give it back."""
    try:
        return str(ip_address(name))
    except ValueError:
        return name

"""`muster certs`: the certificates of Muster's servers, and asking the controller for new ones."""

import sys
import time
from collections.abc import Iterator

import click
import msgspec

from certs.certificate import Certificate, read_bundle
from certs.content import Content, read
from certs.problems import problems
from controller.certificates.options import CLIENT
from muster.api import names
from muster.api.kubernetes.certificates import CERTIFICATE_SECRETS, WEBHOOK_CONFIGURATIONS, CertificateSecret
from muster.api.kubernetes.meta import format_time
from muster.kube.client import Client
from muster.kube.errors import NotFound
from musterctl.cluster import Where
from musterctl.objects import Failed, failing_as
from musterctl.options import where_options
from musterctl.output.report import print_json

_LEAVES = ("tls",)
_OTHERS = ("reports", CLIENT)
"""Certificates that only some installations, or some Secrets, have."""
Bundles = dict[str, list[tuple[Certificate, ...]]]

secret_options = (
    click.option("--secret", default=names.CERTIFICATES, show_default=True, help="The Secret that has them."),
    click.option("-n", "--namespace", default=names.SYSTEM_NAMESPACE, show_default=True, help="Where it is."),
)


class Entry(msgspec.Struct, omit_defaults=True):
    """A certificate or an authority, as `-o json` shows it; times are RFC 3339."""

    subject: str
    fingerprint: str
    expires: str
    renewed: str
    signed_by: str = ""
    role: str = ""


class Status(msgspec.Struct):
    """What `muster certs status` finds."""

    secret: str
    kept_by_muster: bool
    certificates: dict[str, Entry]
    authorities: list[Entry]
    webhooks: dict[str, str]
    asked_for: str
    problems: list[str]


@click.group()
def certs() -> None:
    """Shows the certificates of Muster's servers, and renews them."""


@certs.command()
@click.option("--webhooks", default=names.WEBHOOKS, show_default=True, help="Name of the webhook configurations.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@secret_options[0]
@secret_options[1]
@where_options
def status(*, webhooks: str, output: str, secret: str, namespace: str, where: Where) -> None:
    """Shows certificates, their signers and the webhooks' trust.

    The exit code is 1 if something is wrong. It reads the Secret, for which it needs the right, and shows no keys.
    """
    client = where.client()
    found = _read(client, secret, namespace)
    # The Secret between kube-scheduler and the extender has nothing to do with webhooks.
    bundles = {} if found and f"{CLIENT}.crt" in (found.data or {}) else _bundles(client, webhooks)
    now_s = client.server_time_s() or time.time()
    report = _status(f"{namespace}/{secret}", found, bundles, now_s)
    if output == "json":
        print_json(report)
    else:
        for line in _lines(report):
            click.echo(line)
    sys.exit(1 if report.problems else 0)


@certs.command()
@click.option("--serving", "what", flag_value="serving", help="Only new certificates, by the authority that there is.")
@click.option("--revoke", "what", flag_value="revoke", help="A new authority too, and the end of all old ones soon.")
@secret_options[0]
@secret_options[1]
@where_options
def rotate(*, what: str | None, secret: str, namespace: str, where: Where) -> None:
    """Asks for a new authority and new certificates.

    The controller that leads does it, without any admission failing, which takes a minute; while none runs, the request
    waits for it. Old authorities are trusted until they expire, or with --revoke until no replica needs them.
    """
    client = where.client()
    found = _read(client, secret, namespace)
    target = f"secret/{secret}"
    if found is None:
        raise Failed(f"there is no {target} in namespace {namespace}: the controller makes it when it runs")
    if not _content(found).ours:
        raise Failed(f"{target} in namespace {namespace} is not kept by Muster: ask who keeps it, e.g. `cmctl renew`")
    request = what or "authority"
    patch = {"metadata": {"annotations": {names.ROTATE: request}}}
    with failing_as("change", client, CERTIFICATE_SECRETS, secret, namespace):
        client.merge_patch(CERTIFICATE_SECRETS, secret, patch, namespace)
    click.echo(f"{target}: {request} asked for; `muster certs status` shows what becomes of it")


def _read(client: Client, secret: str, namespace: str) -> CertificateSecret | None:
    with failing_as("read", client, CERTIFICATE_SECRETS, secret, namespace):
        try:
            return client.get(CERTIFICATE_SECRETS, secret, namespace)
        except NotFound:
            return None


def _content(secret: CertificateSecret) -> Content:
    meta = secret.metadata
    data = secret.data or {}
    leaves = (*_LEAVES, *(name for name in _OTHERS if f"{name}.crt" in data))
    return read(data, meta.labels, meta.annotations, leaves)


def _bundles(client: Client, name: str) -> Bundles:
    result: Bundles = {}
    for kind in WEBHOOK_CONFIGURATIONS:
        with failing_as("read", client, kind, name):
            try:
                webhooks = client.get(kind, name).webhooks or []
            except NotFound:
                webhooks = []
        result[f"{kind.kind} {name}"] = [read_bundle(each.client_config.ca_bundle or b"") for each in webhooks]
    return result


def _status(where: str, secret: CertificateSecret | None, bundles: Bundles, now_s: float) -> Status:
    content = _content(secret) if secret else None
    shown = content or Content()
    leaves = {name: pair.certificate for name, pair in shown.leaves.items()}
    missing = [f"there is no {name}" for name, webhooks in bundles.items() if not webhooks]
    return Status(
        secret=where,
        kept_by_muster=shown.ours and secret is not None,
        certificates={name: _entry(each, shown) for name, each in leaves.items()},
        authorities=[_entry(each, shown) for each in shown.trusted],
        webhooks={
            name: f"{sum(_trusts(bundle, leaves) for bundle in webhooks)} of {len(webhooks)} trust the certificate"
            for name, webhooks in bundles.items()
        },
        asked_for=shown.request,
        problems=missing + problems(content, bundles, now_s=now_s, leaves=_LEAVES, managed=False),
    )


def _trusts(bundle: tuple[Certificate, ...], leaves: dict[str, Certificate]) -> bool:
    return bool(leaves) and all(any(leaf.signed_by(each) for each in bundle) for leaf in leaves.values())


def _entry(certificate: Certificate, content: Content) -> Entry:
    signer = None if certificate.is_authority else content.signer_of(certificate)
    return Entry(
        subject=certificate.subject,
        fingerprint=certificate.fingerprint,
        expires=format_time(certificate.ends_s),
        renewed=format_time(certificate.due_s),
        signed_by=signer.subject if signer else "",
        role=_role(certificate, content) if certificate.is_authority else "",
    )


def _role(authority: Certificate, content: Content) -> str:
    if content.coming and authority == content.coming.certificate:
        return "coming: signs when everybody trusts it"
    if content.issuer and authority == content.issuer.certificate:
        return "signs"
    soon = authority.fingerprint in content.revoked
    return "old: goes when no replica needs it" if soon else "old: trusted until it expires"


def _lines(report: Status) -> Iterator[str]:
    keeper = "kept by Muster" if report.kept_by_muster else "not kept by Muster"
    yield f"Secret:       {report.secret} ({keeper})"
    yield "Certificates:" if report.certificates else "Certificates: none"
    for name, each in report.certificates.items():
        by = f", by {each.signed_by}" if each.signed_by else ""
        yield f"  {name}: {each.subject}, until {each.expires}, renewed from {each.renewed}{by}"
    yield "Authorities:" if report.authorities else "Authorities:  none"
    for each in report.authorities:
        yield f"  {each.subject} ({each.fingerprint[:12]}), until {each.expires}, {each.role}"
    if report.webhooks:
        yield "Webhooks:"
    for name, text in report.webhooks.items():
        yield f"  {name}: {text}"
    if report.asked_for:
        yield f"Asked for:    {report.asked_for}, not carried out yet"
    yield "Problems:" if report.problems else "Problems:     none"
    for problem in report.problems:
        yield f"  {problem}"

"""`muster certs`: shows the certificates of Muster's servers, and requests new certificates from the controller."""

import sys
import time
from collections.abc import Iterator
from itertools import chain

import click
import msgspec

from certs.certificate import Certificate, read_bundle
from certs.content import REPORTS, SERVING, Content, problems, read
from muster.api import names
from muster.api.kubernetes.extensions import CERTIFICATE_SECRETS, WEBHOOK_CONFIGURATIONS, CertificateSecret, Webhook
from muster.api.kubernetes.meta import format_time
from muster.kube.client import Client
from muster.kube.errors import NotFound
from musterctl.cluster import Failed, Where, failing_as
from musterctl.options import object_output_option, where_options
from musterctl.output.report import print_report

Bundles = dict[str, list[tuple[Certificate, ...]]]
Called = dict[str, list[Webhook]]
"""Maps each webhook configuration to its webhooks."""

secret_option = click.option(
    "--secret", default=names.CERTIFICATES, show_default=True, help="The Secret that contains the certificates."
)
secret_namespace_option = click.option(
    "-n", "--namespace", default=names.SYSTEM_NAMESPACE, show_default=True, help="The namespace of the Secret."
)


class CertificateEntry(msgspec.Struct, omit_defaults=True):
    """A certificate or an authority in the form that `-o json` shows, with times in RFC 3339 format."""

    subject: str
    fingerprint: str
    expires: str
    renewed: str
    signed_by: str = ""
    role: str = ""


class CertificateStatus(msgspec.Struct):
    """The certificates of a cluster that `muster certs status` shows."""

    secret: str
    kept_by_muster: bool
    certificates: dict[str, CertificateEntry]
    authorities: list[CertificateEntry]
    webhooks: dict[str, str]
    asked_for: str
    problems: list[str]


@click.group()
def certs() -> None:
    """Shows and renews the certificates of Muster's servers."""


@certs.command()
@click.option("--webhooks", default=names.WEBHOOKS, show_default=True, help="Name of the webhook configurations.")
@object_output_option
@secret_option
@secret_namespace_option
@where_options
def status(*, webhooks: str, output: str, secret: str, namespace: str, where: Where) -> None:
    """Shows the expiry, signers and trust of certificates.

    The exit code is 1 if there is a problem. The command needs the right to read the Secret, and does not show keys.
    """
    client = where.client()
    found = _read_secret(client, secret, namespace)
    now_s = client.server_time_s() or time.time()
    called = _webhooks(client, webhooks)
    by_url = found is None and any(called.values()) and all(each.client_config.url for each in chain(*called.values()))
    report = (_of_plane if by_url else _status)(f"{namespace}/{secret}", found, _bundles(called), now_s)
    print_report(report, _lines(report), output)
    sys.exit(1 if report.problems else 0)


@certs.command()
@click.option("--serving", is_flag=True, help="Renew only the serving certificates, signed by the current authority.")
@secret_option
@secret_namespace_option
@where_options
def rotate(*, serving: bool, secret: str, namespace: str, where: Where) -> None:
    """Requests a new authority and new certificates.

    The leading controller issues the certificates within minutes, and admission keeps working. Without a controller,
    the request waits. The old authority stays trusted until all replicas have had an hour to load the new certificates.
    """
    client = where.client()
    found = _read_secret(client, secret, namespace)
    target = f"secret/{secret}"
    if found is None:
        raise Failed(
            f"there is no {target} in namespace {namespace}: the controller creates it; check that the controller runs"
        )
    if not _content(found).ours:
        raise Failed(
            f"{target} in namespace {namespace} is not managed by Muster: renew it through its issuer, for "
            f"example with `cmctl renew`"
        )
    request = "serving" if serving else "authority"
    patch = {"metadata": {"annotations": {names.ROTATE: request}}}
    with failing_as("change", client, CERTIFICATE_SECRETS, secret, namespace):
        client.merge_patch(CERTIFICATE_SECRETS, secret, patch, namespace)
    click.echo(f"{target}: requested new certificates ({request}); `muster certs status` shows the progress")


def _read_secret(client: Client, secret: str, namespace: str) -> CertificateSecret | None:
    with failing_as("read", client, CERTIFICATE_SECRETS, secret, namespace):
        try:
            return client.get(CERTIFICATE_SECRETS, secret, namespace)
        except NotFound:
            return None


def _content(secret: CertificateSecret) -> Content:
    meta = secret.metadata
    data = secret.data or {}
    leaves = (SERVING, REPORTS) if f"{REPORTS}.crt" in data else (SERVING,)
    return read(data, meta.labels, meta.annotations, leaves)


def _webhooks(client: Client, name: str) -> Called:
    result: Called = {}
    for kind in WEBHOOK_CONFIGURATIONS:
        with failing_as("read", client, kind, name):
            try:
                result[f"{kind.kind} {name}"] = client.get(kind, name).webhooks or []
            except NotFound:
                result[f"{kind.kind} {name}"] = []
    return result


def _bundles(called: Called) -> Bundles:
    return {
        name: [read_bundle(each.client_config.ca_bundle or b"") for each in webhooks]
        for name, webhooks in called.items()
    }


def _of_plane(where: str, _: CertificateSecret | None, bundles: Bundles, now_s: float) -> CertificateStatus:
    """Return the status of a local control plane, whose webhooks are called by URL.

    `muster up` has issued its certificates, so no Secret exists.
    """
    role = "trusted by API servers that call the webhooks"
    trusted = dict.fromkeys(authority for webhooks in bundles.values() for bundle in webhooks for authority in bundle)
    return CertificateStatus(
        secret=f"{where} does not exist, because `muster up` manages the certificates",
        kept_by_muster=False,
        certificates={},
        authorities=[msgspec.structs.replace(_entry(each, Content()), role=role) for each in trusted],
        webhooks={name: f"{len(webhooks)} are called by URL" for name, webhooks in bundles.items()},
        asked_for="",
        problems=[f"{one.subject} has expired on {format_time(one.ends_s)}" for one in trusted if one.ends_s < now_s],
    )


def _status(where: str, secret: CertificateSecret | None, bundles: Bundles, now_s: float) -> CertificateStatus:
    content = _content(secret) if secret else None
    shown = content or Content()
    leaves = {name: pair.certificate for name, pair in shown.leaves.items()}
    missing = [f"there is no {name}" for name, webhooks in bundles.items() if not webhooks]
    return CertificateStatus(
        secret=where,
        kept_by_muster=shown.ours and secret is not None,
        certificates={name: _entry(each, shown) for name, each in leaves.items()},
        authorities=[_entry(each, shown) for each in shown.trusted],
        webhooks={
            name: f"{sum(_trusts(bundle, leaves) for bundle in webhooks)} of {len(webhooks)} trust the certificate"
            for name, webhooks in bundles.items()
        },
        asked_for=shown.request,
        problems=missing + problems(content, bundles, now_s=now_s, leaves=(SERVING,), managed=False),
    )


def _trusts(bundle: tuple[Certificate, ...], leaves: dict[str, Certificate]) -> bool:
    return bool(leaves) and all(any(leaf.signed_by(each) for each in bundle) for leaf in leaves.values())


def _entry(certificate: Certificate, content: Content) -> CertificateEntry:
    signer = None if certificate.is_authority else content.signer_of(certificate)
    return CertificateEntry(
        subject=certificate.subject,
        fingerprint=certificate.fingerprint,
        expires=format_time(certificate.ends_s),
        renewed=format_time(certificate.due_s),
        signed_by=signer.subject if signer else "",
        role=_role(certificate, content) if certificate.is_authority else "",
    )


def _role(authority: Certificate, content: Content) -> str:
    if content.coming and authority == content.coming.certificate:
        return "next: will sign once every webhook configuration trusts it"
    if content.issuer and authority == content.issuer.certificate:
        return "signs"
    return "old: removed once no replica needs it"


def _lines(report: CertificateStatus) -> Iterator[str]:
    keeper = "managed by Muster" if report.kept_by_muster else "not managed by Muster"
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
        yield f"Requested:    {report.asked_for}, not carried out yet"
    yield "Problems:" if report.problems else "Problems:     none"
    for problem in report.problems:
        yield f"  {problem}"

"""The content of the Secret with Muster's certificates: its format, and its problems as sentences for users.

================  ====================================================================================================
`ca.crt`          all trusted authorities: the current one, the next one, and old ones that signed a certificate
                  which a replica may still present; also the `caBundle` of the webhook configurations
`issuer.crt/key`  the authority that signs now
`next.crt/key`    the authority that will sign as soon as every API server trusts it; usually there is none
`<name>.crt/key`  the certificates in use, each under its name; `tls` is the webhook's
================  ====================================================================================================

The keys `ca.crt`, `tls.crt` and `tls.key` have the same names in Secrets of cert-manager, so a process can mount a
Secret of either kind.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from certs.certificate import Certificate, Pair, UnreadableError, read_bundle, write_bundle
from muster.api import names
from muster.api.kubernetes.meta import format_time

BUNDLE: Final = "ca.crt"
ISSUER: Final = "issuer"
NEXT: Final = "next"
SERVING: Final = "tls"
"""Name of the webhook's certificate in the Secret, whose keys are tls.crt and tls.key."""
REPORTS: Final = "reports"
"""Name of the certificate of the TrainJobs' status server."""
WEB: Final = "web"
"""Name of the certificate of the web page."""


@dataclass(frozen=True)
class Content:
    """The readable part of the Secret; unreadable parts count as missing, and `faults` lists these parts.

    `ours` is False for a Secret of another issuer, which Muster never changes. `request` is a user's request for a
    renewal.
    """

    issuer: Pair | None = None
    coming: Pair | None = None
    trusted: tuple[Certificate, ...] = ()
    """The trusted authorities, newest first."""
    leaves: Mapping[str, Pair] = field(default_factory=dict)
    request: str = ""
    ours: bool = True
    faults: tuple[str, ...] = ()

    @property
    def signer(self) -> Pair | None:
        """The newest authority whose key is in the Secret."""
        return self.coming or self.issuer

    def signer_of(self, leaf: Certificate) -> Certificate | None:
        """Return the trusted authority that has signed the certificate."""
        return next((authority for authority in self.trusted if leaf.signed_by(authority)), None)


def read(
    data: Mapping[str, bytes], labels: Mapping[str, str], annotations: Mapping[str, str], leaves: tuple[str, ...]
) -> Content:
    """Return the content of an existing Secret; `leaves` has the names of the Secret's server certificates."""
    faults: list[str] = []
    found = {name: _pair(data, name, faults) for name in (ISSUER, NEXT, *leaves)}
    issuer, coming = found[ISSUER], found[NEXT]
    signing = [pair.certificate for pair in (coming, issuer) if pair]
    trusted = [authority for authority in read_bundle(data.get(BUNDLE, b"")) if authority.is_authority]
    return Content(
        issuer=issuer,
        coming=coming,
        trusted=tuple(dict.fromkeys([*signing, *trusted])),  # signers that the bundle lacks are added
        leaves={name: pair for name in leaves if (pair := found[name])},
        request=annotations.get(names.ROTATE, ""),
        ours=labels.get(names.MANAGED_BY) == names.MANAGER or not any(data.values()),
        faults=tuple(faults),
    )


def data_of(content: Content) -> dict[str, bytes | None]:
    """Return the data of a Secret with this content; a key whose value is None is to be removed."""
    result: dict[str, bytes | None] = {BUNDLE: write_bundle(content.trusted)}
    for name, pair in ((ISSUER, content.issuer), (NEXT, content.coming), *content.leaves.items()):
        result[f"{name}.crt"] = pair.certificate.pem if pair else None
        result[f"{name}.key"] = pair.key_pem if pair else None
    return result


def annotations_of(content: Content) -> dict[str, str | None]:
    """Return the annotations of a Secret with this content; an annotation with the value None is to be removed."""
    return {names.ROTATE: content.request or None}


def _pair(data: Mapping[str, bytes], name: str, faults: list[str]) -> Pair | None:
    cert_pem, key_pem = data.get(f"{name}.crt", b""), data.get(f"{name}.key", b"")
    if not cert_pem and not key_pem:
        return None
    try:
        return Pair.read(cert_pem, key_pem)
    except UnreadableError as error:
        faults.append(f"{name}.crt: {error}")
        return None


def all_pairs(content: Content) -> Iterator[tuple[str, Certificate]]:
    """Yield every certificate that has a key, with its name in the Secret."""
    for name, pair in ((ISSUER, content.issuer), (NEXT, content.coming), *content.leaves.items()):
        if pair:
            yield name, pair.certificate


_LATE = 4
"""Divisor of the time between a certificate's due renewal and its expiry. After a quarter of this time, the certificate
is reported as overdue."""


def problems(
    content: Content | None,
    bundles: Mapping[str, Sequence[tuple[Certificate, ...]]],
    *,
    now_s: float,
    leaves: Sequence[str],
    managed: bool = True,
) -> list[str]:
    """Return sentences about all problems of the certificates.

    `bundles` maps a webhook configuration to its caBundles; `leaves` has the names of the required certificates.
    """
    if content is None:
        return ["the Secret does not exist"]
    foreign = (
        "the Secret belongs to another issuer, so it is not written: set certIssuer: external, "
        "or delete the Secret, or configure another one"
    )
    return [
        *content.faults,
        *([foreign] if managed and not content.ours else []),
        *(f"there is no certificate {name}.crt with its key" for name in leaves if name not in content.leaves),
        *_old(content, now_s),
        *_not_trusted(content, bundles),
    ]


def _old(content: Content, now_s: float) -> Iterator[str]:
    for name, certificate in all_pairs(content):
        late_s = certificate.due_s + (certificate.ends_s - certificate.due_s) / _LATE
        if certificate.ends_s < now_s:
            yield f"{name}.crt has expired on {format_time(certificate.ends_s)}"
        elif now_s < certificate.begins_s:
            yield f"{name}.crt is not valid before {format_time(certificate.begins_s)}"
        elif late_s < now_s:
            yield f"{name}.crt should have been renewed: it expires on {format_time(certificate.ends_s)}"


def _not_trusted(content: Content, bundles: Mapping[str, Sequence[tuple[Certificate, ...]]]) -> Iterator[str]:
    leaf = next(iter(content.leaves.values()), None)
    for name, webhooks in bundles.items():
        if leaf is None:
            return
        without = sum(not leaf.vouched_by(bundle) for bundle in webhooks)
        if without:
            yield f"{without} of {len(webhooks)} webhooks of {name} do not trust the certificate in the Secret"

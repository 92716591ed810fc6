"""Problems of certificates, in sentences for people; none of them shows anything of a key."""

from collections.abc import Iterator, Mapping, Sequence

from certs.certificate import Certificate
from certs.content import Content, all_pairs
from muster.api.kubernetes.meta import format_time

_LATE = 4
"""A certificate is late when one part of so many is over of the time between its renewal, as planned, and its end."""


def problems(
    content: Content | None,
    bundles: Mapping[str, Sequence[tuple[Certificate, ...]]],
    *,
    now_s: float,
    leaves: Sequence[str],
    managed: bool = True,
) -> list[str]:
    """Every problem. `bundles` has the caBundles of each webhook configuration by its name.

    `managed`: the Secret should be one that Muster writes. `leaves` are the certificates that should be there.
    """
    if content is None:
        return ["the Secret does not exist"]
    return [
        *(f"{fault}" for fault in content.faults),
        *_foreign(content, managed=managed),
        *(f"there is no certificate {name}.crt with its key" for name in leaves if name not in content.leaves),
        *_old(content, now_s),
        *_not_trusted(content, bundles),
    ]


def _foreign(content: Content, *, managed: bool) -> Iterator[str]:
    if managed and not content.ours:
        yield (
            "the Secret belongs to another issuer, so it is not written: say so (certIssuer: external), "
            "or delete it, or name another one"
        )


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
    leaf = next((pair.certificate for pair in content.leaves.values()), None)
    for name, webhooks in bundles.items():
        if leaf is None:
            return
        without = sum(not any(leaf.signed_by(each) for each in bundle) for bundle in webhooks)
        if without:
            yield f"{without} of {len(webhooks)} webhooks of {name} do not trust the certificate in the Secret"

"""The next step of a rotation: a pure decision from the Secret, the webhook configurations and two clocks.

Authorities change in this order, so that every API server always trusts the certificates of every replica:

1. `NewAuthority`: the next authority is in the Secret, and is added to every caBundle next to the old one.
2. `Issue`: the next authority signs new certificates in the Secret. Before that, every caBundle must have contained
   the authority for `trust_wait_s`, so that every API server has loaded the change.
3. `Drop`: an old authority is removed when it has signed no certificate in the Secret for `load_wait_s`, so that every
   replica has loaded the new certificates.

There are two clocks, because the wall clock may jump. The API server's time decides if a certificate is valid, because
the API server checks the validity. This process's monotonic clock measures waits. After a restart of this process, each
wait begins again, which delays the rotation but is safe.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from certs.certificate import Certificate, Pair
from certs.content import Content

REQUESTS: Final = ("serving", "authority")
"""Values with which users request new server certificates (`serving`), or also a new authority (`authority`)."""
_LONGEST_S: Final = 600.0
_SHORTEST_S: Final = 0.1


@dataclass(frozen=True, kw_only=True)
class WantedCertificate:
    """A required server certificate, with its name in the Secret and its hosts."""

    name: str
    common_name: str
    names: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class Terms:
    """Lifetimes of certificates, and the times that other processes need to load a change; all in seconds."""

    authority_life_s: float
    life_s: float
    trust_wait_s: float
    """Time until every API server uses a new caBundle."""
    load_wait_s: float
    """Time until every replica uses the content of the Secret; longer than a kubelet takes to update a volume."""


@dataclass(frozen=True, kw_only=True)
class Situation:
    """Input of a decision other than the Secret and the caBundles.

    The mappings map the fingerprint of a certificate to a time in seconds; a missing entry counts as 0.
    """

    now_s: float
    """The current time, by the API server's clock."""
    terms: Terms
    wanted: Sequence[WantedCertificate]
    trusted_s: Mapping[str, float] = field(default_factory=dict)
    """Maps an authority to the time for which this process has continuously seen it in every existing caBundle."""
    loaded_s: Mapping[str, float] = field(default_factory=dict)
    """Maps a certificate to the time for which this process has continuously seen it in the Secret."""


@dataclass(frozen=True)
class NewAuthority:
    """Step that creates an authority, which does not sign certificates yet."""

    why: str


@dataclass(frozen=True)
class Issue:
    """Step in which the current or the next authority issues certificates; the next authority then becomes current."""

    why: str
    wanted: tuple[WantedCertificate, ...]
    by: Literal["coming", "issuer"]


@dataclass(frozen=True)
class Drop:
    """Step that removes trusted authorities, because no replica presents a certificate that they have signed."""

    authorities: tuple[Certificate, ...]


@dataclass(frozen=True)
class Refuse:
    """Step that removes a user's request that is not one of REQUESTS."""

    why: str


Step = NewAuthority | Issue | Drop | Refuse
Bundles = Sequence[tuple[Certificate, ...]]
"""The parsed caBundles of all webhooks."""


def next_step(content: Content | None, bundles: Bundles, at: Situation) -> Step | None:
    """Return the next step, or None if none is due; `content` is None if there is no Secret."""
    content = content or Content()
    if not content.ours:
        return None
    if content.request and content.request not in REQUESTS:
        return Refuse(f"{content.request!r} is not a valid request; valid requests are {', '.join(REQUESTS)}")
    if why := _why_new_authority(content, at.now_s):
        return NewAuthority(why)
    issue = _issue(content, bundles, at)
    old = tuple(each for each in content.trusted if _unused(content, each, at))
    return issue or (Drop(old) if old else None)


def _why_new_authority(content: Content, now_s: float) -> str:
    signer = content.signer
    if signer is None:
        return "there was none"
    if not signer.certificate.valid_at(now_s):
        return "the current authority is not valid at this time"
    if signer.certificate.due_s <= now_s:
        return "the current authority has used two thirds of its lifetime"
    requested = content.coming is None and content.request == "authority"
    return "it was requested" if requested else ""


def _issue(content: Content, bundles: Bundles, at: Situation) -> Issue | None:
    """Return the step that issues the certificates that are due, if any.

    Only an authority that every API server trusts is allowed to sign.
    """

    def ready(pair: Pair | None) -> bool:
        if pair is None or not pair.certificate.valid_at(at.now_s):
            return False
        waited_s = at.trusted_s.get(pair.certificate.fingerprint, 0.0)
        return waited_s >= at.terms.trust_wait_s or not any(bundles)  # without caBundles, no API server can lose access

    if content.coming and ready(content.coming):
        return Issue("a new authority signs", tuple(at.wanted), "coming")
    if not content.issuer or not ready(content.issuer):
        return None
    issuer = content.issuer.certificate
    ends_s = min(at.now_s + at.terms.life_s, issuer.ends_s)
    reasons = {each: why for each in at.wanted if (why := _why_new(content, each, issuer, at.now_s, ends_s))}
    if not reasons:
        return None
    return Issue("; ".join(dict.fromkeys(reasons.values())), tuple(reasons), "issuer")


def _why_new(content: Content, wanted: WantedCertificate, issuer: Certificate, now_s: float, ends_s: float) -> str:
    """Return the reason to issue a new certificate, valid until `ends_s`; empty if there is no reason."""
    pair = content.leaves.get(wanted.name)
    if pair is None:
        return "there was none"
    certificate = pair.certificate
    if not certificate.valid_at(now_s):
        return "the current certificate is not valid at this time"
    if certificate.names != wanted.names:
        return "the current certificate is for other names"
    if not certificate.signed_by(issuer):
        return "the current certificate was signed by another authority"
    if certificate.due_s <= now_s and certificate.ends_s + 1 < ends_s:  # a new one must end later
        return "the current certificate has used two thirds of its lifetime"
    return "it was requested" if content.request == "serving" else ""


def _unused(content: Content, authority: Certificate, at: Situation) -> bool:
    """Return True if no replica presents, or will present, a certificate that this authority has signed."""
    if authority in {pair.certificate for pair in (content.issuer, content.coming) if pair}:
        return False
    leaves = [pair.certificate for pair in content.leaves.values()]
    if {each.name for each in at.wanted} - set(content.leaves):
        return False  # replicas still present a removed certificate that they have loaded
    return all(
        at.loaded_s.get(leaf.fingerprint, 0.0) >= at.terms.load_wait_s and not leaf.signed_by(authority)
        for leaf in leaves
    )


def bundle_for(
    content: Content, present: tuple[Certificate, ...], at: Situation, also: tuple[Certificate, ...] = ()
) -> tuple[Certificate, ...]:
    """Return the new caBundle of a webhook whose caBundle is now `present`.

    The new caBundle consists of the Secret's authorities, of the authorities in `also`, and of authorities in `present`
    that signed a certificate which a replica may still present.
    """
    trusted = dict.fromkeys((*content.trusted, *also))
    if not trusted:
        return present
    others = [each for each in present if each not in trusted]
    return (*trusted, *(each for each in others if not _unused(content, each, at)))


def next_pass_s(content: Content | None, at: Situation) -> float:
    """Return the seconds after which to decide again if nothing changes; at most 600, because clocks may jump."""
    waits: list[float] = [_LONGEST_S, *(_waits(content, at) if content and content.ours else ())]
    return max(_SHORTEST_S, min(waits))


def _waits(content: Content, at: Situation) -> Iterator[float]:
    for moment_s in (
        *(pair.certificate.due_s for pair in (content.signer, *content.leaves.values()) if pair),
        *(authority.ends_s + 1 for authority in content.trusted),
    ):
        if moment_s > at.now_s:
            yield moment_s - at.now_s
    for pair in (content.coming, content.issuer):
        if pair:
            yield from _rest(at.trusted_s, pair.certificate, at.terms.trust_wait_s)
    for pair in content.leaves.values():
        yield from _rest(at.loaded_s, pair.certificate, at.terms.load_wait_s)


def _rest(seen: Mapping[str, float], certificate: Certificate, wait_s: float) -> Iterator[float]:
    waited_s = seen.get(certificate.fingerprint)
    if waited_s is not None and waited_s < wait_s:
        yield wait_s - waited_s


class Since:
    """Recorder of the time when each item appeared, in seconds of a monotonic clock."""

    def __init__(self) -> None:
        self._first_s: dict[str, float] = {}

    def update(self, present: Iterable[str], now_s: float) -> dict[str, float]:
        """Return the seconds for which each item has been continuously present."""
        self._first_s = {each: self._first_s.get(each, now_s) for each in present}
        return {each: now_s - first_s for each, first_s in self._first_s.items()}

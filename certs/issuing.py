"""Execution of the steps that `rotation` decides: new keys and certificates, the Secret's new content, and Events."""

import ipaddress
import secrets
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Literal

from certs.authority import Authority, CertificatePair
from certs.certificate import Pair
from certs.content import Content
from certs.rotation import Bundles, Drop, Issue, NewAuthority, Refuse, Situation, Step, WantedCertificate, next_step
from muster.api.kubernetes.meta import format_time


def all_steps(content: Content | None, bundles: Bundles, at: Situation) -> tuple[Content | None, list[Step]]:
    """Take all possible steps; return the Secret's new content, for a single write, and the steps taken."""
    steps: list[Step] = []
    while step := next_step(content, bundles, at):
        steps.append(step)
        content = _after(content or Content(), step, at)
    return content, steps


def event_of(step: Step, after: Content) -> tuple[Literal["Normal", "Warning"], str, str]:
    """Return type, reason and message of the Event of a step; `after` is the content of the Secret after all steps."""
    match step:
        case NewAuthority():
            newest = after.trusted[0]
            when = (
                "the authority will sign when every webhook trusts it"
                if after.coming
                else "the authority signs from now on"
            )
            message = f"{newest.subject} (until {format_time(newest.ends_s)}): {step.why}; {when}"
            return "Normal", "AuthorityMade", message
        case Issue():
            made = [after.leaves[each.name].certificate for each in step.wanted]
            who = ", ".join(f"{each.subject} (until {format_time(each.ends_s)})" for each in made)
            by = after.issuer.certificate.subject if after.issuer else ""
            return "Normal", "CertificateIssued", f"{who} by {by}: {step.why}"
        case Drop():
            gone = ", ".join(each.subject for each in step.authorities)
            return "Normal", "AuthorityDropped", f"{gone}: no replica uses a certificate that this authority signed"
        case Refuse():
            return "Warning", "RotationRefused", step.why


def _after(content: Content, step: Step, at: Situation) -> Content:
    """Take one step of the rotation; return the Secret's new content."""
    match step:
        case NewAuthority():
            return _with_authority(content, at)
        case Issue():
            return _with_certificates(content, step, at)
        case Drop():
            trusted = tuple(each for each in content.trusted if each not in step.authorities)
            return replace(content, trusted=trusted)
        case Refuse():
            return replace(content, request="")


def _with_authority(content: Content, at: Situation) -> Content:
    name = f"muster-ca-{secrets.token_hex(4)}"  # unique to this authority: verifiers find a signer by its name
    life = timedelta(seconds=at.terms.authority_life_s)
    coming = Pair.from_pair(Authority.create(name, life=life, now=_time(at.now_s)).pair)
    request = "" if content.request == "authority" else content.request
    return replace(content, coming=coming, trusted=(coming.certificate, *content.trusted), request=request, faults=())


def _with_certificates(content: Content, step: Issue, at: Situation) -> Content:
    signer = content.coming if step.by == "coming" else content.issuer
    if signer is None:
        raise ValueError(f"there is no {step.by} authority to sign with")  # a bug in `rotation`
    authority = Authority(CertificatePair(signer.certificate.pem, signer.key_pem))
    made = {each.name: _issued(authority, each, at) for each in step.wanted}
    coming = None if step.by == "coming" else content.coming
    request = "" if content.request == "serving" else content.request
    leaves = {**content.leaves, **made}
    return replace(content, issuer=signer, coming=coming, leaves=leaves, request=request, faults=())


def _issued(authority: Authority, wanted: WantedCertificate, at: Situation) -> Pair:
    addresses = sorted(name for name in wanted.names if _is_address(name))
    others, life = sorted(wanted.names - set(addresses)), timedelta(seconds=at.terms.life_s)
    pair = authority.issue(
        wanted.common_name, dns_names=others, ips=addresses, server=True, life=life, now=_time(at.now_s)
    )
    return Pair.from_pair(pair)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _time(now_s: float) -> datetime:
    """Return the time in whole seconds, as used in certificates."""
    return datetime.fromtimestamp(int(now_s), UTC)

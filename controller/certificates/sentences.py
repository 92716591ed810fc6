"""The steps of a rotation as Events."""

from typing import Literal, NamedTuple

from certs.content import Content
from certs.rotation import Drop, Issue, NewAuthority, Refuse, Step
from muster.api.kubernetes.meta import format_time


class Told(NamedTuple):
    """One Event."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


def told(step: Step, after: Content) -> Told:
    """The Event of a step; `after` is the content of the Secret when all steps of its write were taken."""
    match step:
        case NewAuthority():
            newest = after.trusted[0]
            when = "it signs when every webhook trusts it" if after.coming else "it signs from now on"
            message = f"{newest.subject} (until {format_time(newest.ends_s)}): {step.why}; {when}"
            return Told("Normal", "AuthorityMade", message)
        case Issue():
            made = [after.leaves[each.name].certificate for each in step.wanted]
            who = ", ".join(f"{each.subject} (until {format_time(each.ends_s)})" for each in made)
            by = after.issuer.certificate.subject if after.issuer else ""
            return Told("Normal", "CertificateIssued", f"{who} by {by}: {step.why}")
        case Drop():
            gone = ", ".join(each.subject for each in step.authorities)
            return Told("Normal", "AuthorityDropped", f"{gone}: no replica shows a certificate of it any more")
        case Refuse():
            return Told("Warning", "RotationRefused", step.why)

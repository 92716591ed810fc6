"""Metrics of certificates, which every replica has, leader or not; and Events of the steps of a rotation."""

from typing import Literal

from prometheus_client import Counter, Gauge

from certs.content import Content, all_pairs
from certs.rotation import Drop, Issue, NewAuthority, Refuse, Step
from muster.api.kubernetes.meta import format_time

EXPIRES = Gauge(
    "muster_certificate_expiry_timestamp_seconds", "When a certificate in the Secret ends, since the epoch.", ["name"]
)
DUE = Gauge(
    "muster_certificate_renewal_timestamp_seconds", "When a certificate in the Secret is to be renewed.", ["name"]
)
TRUSTED = Gauge("muster_certificate_authorities", "Authorities that are trusted, coming and old ones too.")
PROBLEMS = Gauge("muster_certificate_problems", "How many things are wrong; Events of the Secret and the log say what.")
STEPS = Counter("muster_certificate_steps_total", "Steps taken, by kind.", ["step"])


def measure(content: Content | None) -> None:
    """Measures the Secret; a certificate that is not there any more has no metric any more."""
    EXPIRES.clear()
    DUE.clear()
    for name, certificate in all_pairs(content or Content()):
        EXPIRES.labels(name).set(certificate.ends_s)
        DUE.labels(name).set(certificate.due_s)
    TRUSTED.set(len(content.trusted) if content else 0)


def told(step: Step, after: Content) -> tuple[Literal["Normal", "Warning"], str, str]:
    """Type, reason and message of the Event of a step; `after` is the content when all steps were taken."""
    match step:
        case NewAuthority():
            newest = after.trusted[0]
            when = "it signs when every webhook trusts it" if after.coming else "it signs from now on"
            message = f"{newest.subject} (until {format_time(newest.ends_s)}): {step.why}; {when}"
            return "Normal", "AuthorityMade", message
        case Issue():
            made = [after.leaves[each.name].certificate for each in step.wanted]
            who = ", ".join(f"{each.subject} (until {format_time(each.ends_s)})" for each in made)
            by = after.issuer.certificate.subject if after.issuer else ""
            return "Normal", "CertificateIssued", f"{who} by {by}: {step.why}"
        case Drop():
            gone = ", ".join(each.subject for each in step.authorities)
            return "Normal", "AuthorityDropped", f"{gone}: no replica shows a certificate of it any more"
        case Refuse():
            return "Warning", "RotationRefused", step.why

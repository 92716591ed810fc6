"""Metrics of certificates: when each ends, and how many problems there are. Every replica has them, leader or not."""

from prometheus_client import Counter, Gauge

from certs.content import Content, all_pairs

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

"""Metrics of certificates: when each ends, and how many problems there are. Every replica has them, leader or not."""

from prometheus_client import Counter, Gauge

from certs.content import Content, all_pairs

EXPIRES = Gauge(
    "muster_certificate_expiry_timestamp_seconds",
    "When a certificate in the Secret ends, since the epoch.",
    ["secret", "name"],
)
DUE = Gauge(
    "muster_certificate_renewal_timestamp_seconds",
    "When a certificate in the Secret is to be renewed.",
    ["secret", "name"],
)
TRUSTED = Gauge("muster_certificate_authorities", "Authorities that are trusted, coming and old ones too.", ["secret"])
PROBLEMS = Gauge(
    "muster_certificate_problems", "How many things are wrong; Events of the Secret and the log say what.", ["secret"]
)
STEPS = Counter("muster_certificate_steps_total", "Steps taken, by kind.", ["step"])


def measure(secret: str, content: Content | None) -> None:
    """Measures the Secret of this name; a certificate that is not there any more has no metric any more."""
    for gauge in (EXPIRES, DUE):
        gauge.remove_by_labels({"secret": secret})
    for name, certificate in all_pairs(content or Content()):
        EXPIRES.labels(secret, name).set(certificate.ends_s)
        DUE.labels(secret, name).set(certificate.due_s)
    TRUSTED.labels(secret).set(len(content.trusted) if content else 0)

"""Annotation `muster.dev/compat`: quirks of Volcano that one Job wants back (docs/volcano-differences.md)."""

from muster.api import names
from muster.api.kubernetes.meta import ObjectMeta

RESUME_COUNTS = "resume-counts"
"""ResumeJob uses up one of maxRetry."""
TTL_SPARES_ABORTED = "ttl-spares-aborted"
"""ttlSecondsAfterFinished does not delete a Job that is Aborted."""

KNOWN = (RESUME_COUNTS, TTL_SPARES_ABORTED)


def compat(meta: ObjectMeta) -> frozenset[str]:
    """What the object asks for, separated by commas; also what nobody knows."""
    return frozenset(filter(None, (word.strip() for word in meta.annotations.get(names.COMPAT, "").split(","))))

"""Annotation `muster.dev/compat`: quirks of Volcano that a Job asks for (docs/volcano-differences.md)."""

from muster.api import names
from muster.api.kubernetes.meta import ObjectMeta

RESUME_COUNTS = "resume-counts"
"""ResumeJob uses up one of maxRetry."""
TTL_SPARES_ABORTED = "ttl-spares-aborted"
"""ttlSecondsAfterFinished does not delete a Job that is Aborted."""

KNOWN = (RESUME_COUNTS, TTL_SPARES_ABORTED)


def compat(meta: ObjectMeta) -> frozenset[str]:
    """Return the quirks that the object asks for, also unknown ones."""
    return frozenset(filter(None, (word.strip() for word in meta.annotations.get(names.COMPAT, "").split(","))))

"""What a runtime says of its JobSet that a Job of Muster's has no word for: warned of, never passed over in silence."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

_JOBSET: tuple[tuple[str, str, Any], ...] = (
    ("network", "subdomain", ""),
    ("network", "enableDNSHostnames", True),
    ("failurePolicy", "restartStrategy", "Recreate"),
    ("failurePolicy", "rules", []),
)
"""(member, field of it, the value that changes nothing)."""
_OF_JOBS = frozenset({"template", "parallelism", "completions", "completionMode"})
"""Fields of a batch/v1 Job that its pods or their number follow from."""


def without_effect(base: Mapping[str, Any], members: Collection[str]) -> Iterator[str]:
    """The path of each field of a JobSet spec; `members` are the replicated jobs that become tasks of the Job."""
    yield from _of_jobset(base, members)
    yield from _of_jobs(base, members)


def _of_jobset(base: Mapping[str, Any], members: Collection[str]) -> Iterator[str]:
    for member, field, neutral in _JOBSET:
        value = (base.get(member) or {}).get(field)
        if value is not None and value != neutral:
            yield f"{member}.{field}"
    if base.get("managedBy"):
        yield "managedBy"
    policy = base.get("successPolicy") or {}
    targets = set(policy.get("targetReplicatedJobs") or members)
    if policy and len(targets) != 1 and (policy.get("operator") == "Any" or targets != set(members)):
        yield "successPolicy"


def _of_jobs(base: Mapping[str, Any], members: Collection[str]) -> Iterator[str]:
    for job in base.get("replicatedJobs") or []:
        if job["name"] in members:
            given = (job["template"].get("spec") or {}).items()
            fields = sorted(key for key, value in given if key not in _OF_JOBS and value is not None)
            yield from (f"replicatedJobs[{job['name']}].template.spec.{field}" for field in fields)

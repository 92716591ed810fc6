"""Batch Jobs, including those in JobSets, for which Kubernetes counts disrupted pods as failed.

Kubernetes counts disrupted pods towards `backoffLimit` (6 by default). Draining the nodes of seven pods would therefore
fail the Job for good, together with its JobSet. The extender prevents Kubernetes from counting the pods that Muster
evicts. The functions read manifests whose structure has not been checked yet.
"""

from collections.abc import Collection, Iterator

from muster.api.grammar import many
from muster.api.kubeflow.jobset import JOB_SETS
from muster.api.kubernetes.core import CRON_JOBS
from muster.api.kubernetes.pod_problems import DISRUPTED
from muster.api.unchecked import mapping, value_at
from muster.workloads.kind import TEMPLATE, Addition, Place, dotted
from muster.workloads.sample import JSON

DEFAULT_BACKOFF_LIMIT = 6
"""Kubernetes' default for the backoffLimit of a Job."""
EVICTED = {"action": "Ignore", "onPodConditions": [{"type": DISRUPTED, "status": "True"}]}
"""Rule of a podFailurePolicy for pods that were evicted through the Eviction API."""
_OWNERS = frozenset((resource.group, resource.kind) for resource in (CRON_JOBS, JOB_SETS))
"""Kinds whose controllers accept that Muster adds a podFailurePolicy to their batch Jobs."""


def forgiving(job: JSON) -> Iterator[Addition]:
    """Yield additions to a batch Job by which its disrupted pods do not count as failed."""
    spec = mapping(job.get("spec"))
    if not _may_have_a_policy(job, spec):
        return
    why, source = "so that pods that Muster evicts do not count as failed", "spec.template.spec"
    if _never_restarts(spec):
        yield Addition(("spec", "podFailurePolicy"), {"rules": [EVICTED]}, why, source)
    if "podReplacementPolicy" in spec:  # with the API server's default, a pod fails as soon as it is evicted
        yield Addition(("spec", "podReplacementPolicy"), "Failed", why, source)


def unforgiven(job: JSON, places: Collection[Place]) -> Iterator[str]:
    """Yield a warning for a batch Job that would fail if it lost its nodes, unless Muster can prevent the failure."""
    if _may_have_a_policy(job, mapping(job.get("spec"))):
        yield from unforgiven_parts(job, places)


def unforgiven_parts(jobset: JSON, places: Collection[Place]) -> Iterator[str]:
    """Yield a warning for each Job of a JobSet that would fail if it lost its nodes; JobSet itself gives no warning.

    For a template without a restartPolicy, JobSet's own webhook has written OnFailure.
    """
    for place in places:
        part = place[: -len(TEMPLATE) + 1]
        spec = mapping(value_at(jobset, part))
        if not (spec.get("podFailurePolicy") or _never_restarts(spec)):
            yield from _ends_with_its_nodes(spec, dotted(part))


def _may_have_a_policy(job: JSON, spec: JSON) -> bool:
    """Return True if the Job has no pod failure policy yet, and no unknown controller."""
    owners = value_at(job, ("metadata", "ownerReferences"))
    given = (mapping(owner) for owner in (owners if isinstance(owners, list) else ()))
    kinds = {(str(owner.get("apiVersion")).partition("/")[0], str(owner.get("kind"))) for owner in given}
    return not (spec.get("podFailurePolicy") or spec.get("managedBy")) and kinds <= _OWNERS


def _never_restarts(spec: JSON) -> bool:
    return bool(value_at(spec, ("template", "spec", "restartPolicy")) == "Never")


def _ends_with_its_nodes(spec: JSON, path: str) -> Iterator[str]:
    """Yield a warning if a Job has more pods than its backoffLimit, because the loss of all pods would fail the Job."""
    parallelism, limit = spec.get("parallelism") or 1, spec.get("backoffLimit")
    limit = DEFAULT_BACKOFF_LIMIT if limit is None else limit
    if isinstance(parallelism, int) and isinstance(limit, int) and parallelism > limit:
        yield (
            f"{path}.backoffLimit: pods that are drained, or lose their nodes, count towards it, so the loss of "
            f"all {many(parallelism, 'pod')} would fail this Job for good; set {path}.template.spec.restartPolicy to "
            "Never, so that Muster can exclude such pods from the count"
        )

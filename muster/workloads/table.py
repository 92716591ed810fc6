"""The table of workload kinds, and the rules of an owner or the adapter of a pod by it."""

from collections.abc import Mapping
from typing import Any

from muster.api.base import Resource
from muster.api.kubernetes.meta import Object, ObjectMeta, OwnerReference
from muster.workloads.adapter import Adapter, OwnerError
from muster.workloads.batch_job import BATCH_JOB, CRON_JOB
from muster.workloads.jobset import JOB_SET
from muster.workloads.kind import AskedPod, GangRules, WorkloadKind
from muster.workloads.leader_worker_set import LEADER_WORKER_SET
from muster.workloads.pod import POD
from muster.workloads.stateful_set import STATEFUL_SET
from muster.workloads.unranked import DAEMON_SET, DEPLOYMENT, REPLICA_SET, REPLICATION_CONTROLLER
from muster.workloads.volcano_job import VOLCANO_JOB

KINDS: tuple[WorkloadKind, ...] = (
    BATCH_JOB,
    CRON_JOB,
    JOB_SET,
    STATEFUL_SET,
    LEADER_WORKER_SET,
    REPLICA_SET,
    DEPLOYMENT,
    DAEMON_SET,
    REPLICATION_CONTROLLER,
    POD,
    VOLCANO_JOB,
)
"""Every kind, behind the kind that it makes, if it makes one. Messages name them in this order."""

_BY_NAME: Mapping[tuple[str, str], WorkloadKind] = {
    (kind.resource.api_version, kind.resource.kind): kind for kind in KINDS
}
CONTROLLERS: Mapping[tuple[str, str], Resource[Any]] = {
    (kind.ranks.controller.api_version, kind.ranks.controller.kind): kind.ranks.controller
    for kind in KINDS
    if kind.ranks and kind.ranks.controller
}
"""API version and kind → a controller of pods with ranks, which is read when one of them is shaped."""
_NO_RANKS = {kind.resource.kind: kind.no_ranks for kind in KINDS if kind.no_ranks}
_CALLED = [kind.ranks.called for kind in KINDS if kind.ranks and kind.ranks.called]
_ADVICE = f"; use {', '.join(_CALLED[:-1])} or {_CALLED[-1]}"
_NO_POD = AskedPod()


def kind_of(api_version: str, kind: str) -> WorkloadKind | None:
    """The row of a kind; None for one that Muster does not know."""
    return _BY_NAME.get((api_version, kind))


def gang_rules(owner: OwnerReference | None) -> GangRules | None:
    """The rules for the gang of an owner; None without an owner, or if only its pods' own labels count."""
    kind = kind_of(owner.api_version, owner.kind) if owner else None
    return kind.gang if kind else None


def source_of(meta: ObjectMeta) -> Resource[Any] | None:
    """The kind of the owner that must be read before `adapter_for`; None for a pod without an owner.

    Raises OwnerError if pods of the owner's kind have no ranks.
    """
    owner = meta.controller
    if owner is None:
        return None
    resource = CONTROLLERS.get((owner.api_version, owner.kind))
    if resource:
        return resource
    reason = why_no_ranks(owner.kind) or f"Muster does not know how pods of a {owner.kind} find their rank{_ADVICE}"
    raise OwnerError(f"{reason}. This pod belongs to {owner.kind} {owner.name}", owner.kind)


def why_no_ranks(kind: str) -> str:
    """The reason for which pods of this kind have no ranks, with kinds to use instead; "" if they may have some."""
    reason = _NO_RANKS.get(kind, "")
    return f"{reason}{_ADVICE}" if reason else ""


def adapter_for(owner: Object | None, pod: AskedPod = _NO_POD) -> Adapter:
    """The adapter for a pod, or for any pod of the owner; `owner` is of the kind that `source_of` names."""
    for kind in reversed(KINDS):  # a kind that makes another one stands behind it, and comes first here
        if kind.ranks is None:
            continue
        controller = kind.ranks.controller
        if isinstance(owner, controller.type) if controller else owner is None:
            adapter = kind.ranks.adapter(owner, pod)
            if adapter:
                return adapter
    raise TypeError(f"no kind of workload is asked through a {type(owner).__name__}")

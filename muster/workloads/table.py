"""The table of workload kinds."""

from collections.abc import Mapping
from typing import Any

from muster.api.base import Resource
from muster.api.kubernetes.meta import OwnerReference
from muster.workloads.batch_job import BATCH_JOB, CRON_JOB
from muster.workloads.jobset import JOB_SET
from muster.workloads.kind import GangRules, WorkloadKind
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


def kind_of(api_version: str, kind: str) -> WorkloadKind | None:
    """The row of a kind; None for one that Muster does not know."""
    return _BY_NAME.get((api_version, kind))


def gang_rules(owner: OwnerReference | None) -> GangRules | None:
    """The rules for the gang of an owner; None without an owner, or if only its pods' own labels count."""
    kind = kind_of(owner.api_version, owner.kind) if owner else None
    return kind.gang if kind else None

"""Kinds whose pods have no ranks: Deployments with their ReplicaSets, DaemonSets, and ReplicationControllers."""

from collections.abc import Iterator

from muster.api.kubernetes.apps import DAEMON_SETS, DEPLOYMENTS, REPLICA_SETS
from muster.api.kubernetes.core import REPLICATION_CONTROLLERS
from muster.workloads.kind import GangRules, WorkloadKind
from muster.workloads.sample import JSON, SamplePod, mapping, name_of, part_of, pod_of


def _samples(deployment: JSON) -> Iterator[SamplePod]:
    """A pod of the ReplicaSet that its controller makes."""
    replica_set = part_of(deployment, REPLICA_SETS, f"{name_of(deployment)}-1", mapping(deployment.get("spec")))
    template = mapping(replica_set["spec"].get("template"))
    about = f"a pod of Deployment {name_of(deployment)}"
    yield SamplePod(pod_of(replica_set, template, f"{name_of(replica_set)}-1", {}, {}), about, replica_set)


DEPLOYMENT = WorkloadKind(DEPLOYMENTS, labelled=True, samples=_samples)
REPLICA_SET = WorkloadKind(
    REPLICA_SETS,
    no_ranks="pods of a ReplicaSet (or Deployment) have no index, so none of them has a rank",
    gang=GangRules(wants_none=lambda owner: owner.spec.replicas == 0),
)
DAEMON_SET = WorkloadKind(
    DAEMON_SETS,
    one_node_each=True,
    no_ranks="pods of a DaemonSet have no index, so none of them has a rank",
    gang=GangRules(),
)
REPLICATION_CONTROLLER = WorkloadKind(
    REPLICATION_CONTROLLERS, no_ranks="pods of a ReplicationController have no index, so none of them has a rank"
)

"""StatefulSets, whose pods have ordinals, and kinds whose pods have no ranks, such as Deployments and DaemonSets."""

from collections.abc import Iterator

import msgspec

from muster.api import names
from muster.api.fields import FieldError
from muster.api.kubernetes.apps import DAEMON_SETS, DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS, ReplicaSet, StatefulSet
from muster.api.kubernetes.core import REPLICATION_CONTROLLERS
from muster.api.kubernetes.endpoints import Endpoints, NumberedNames
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.limits import PODS, whole_number
from muster.workloads.adapter import Adapter, Owner, Value, label
from muster.workloads.kind import TEMPLATE, Admission, GangRules, Ranks, WorkloadKind, replicated
from muster.workloads.leader_worker_set import place_of_pod
from muster.workloads.sample import JSON, SamplePod, count, mapping, name_of, part_of, pod_of


class StatefulSetAdapter(Adapter):
    """Adapter of a StatefulSet, whose ranks are ordinals, counted from `spec.ordinals.start`."""

    def __init__(self, stateful_set: StatefulSet) -> None:
        meta = stateful_set.metadata
        super().__init__(Owner.from_meta(STATEFUL_SETS, meta), stateful_set.spec.template, meta.annotations)
        self._spec = stateful_set.spec
        self._start = self._spec.ordinals.start if self._spec.ordinals else 0

    def errors(self) -> list[FieldError]:
        """Reject pods without a DNS name, and gangs whose pods wait for each other but are created one by one."""
        result = []
        if not self._spec.service_name:
            message = f"must name a headless Service for {names.FRAMEWORK}: the pods find each other by this Service"
            result.append(FieldError("spec.serviceName", message, reason="Required"))
        minimum = self._minimum
        if self._spec.pod_management_policy != "Parallel" and minimum > 1:
            message = (
                f"must be Parallel: the gang waits for {minimum} pods, and OrderedReady creates each pod only when the "
                f"previous one is ready; annotation {names.MIN_MEMBER} sets the number of pods that start together"
            )
            result.append(FieldError("spec.podManagementPolicy", message, self._spec.pod_management_policy))
        return [*result, *PODS.exceeded("spec.replicas", self.size())]

    def rank(self, pod: ObjectMeta | None) -> Value:
        """Return the label with the ordinal, or the rank itself without this label or with ordinals not from 0."""
        if pod is None or (names.POD_INDEX in pod.labels and not self._start):
            return label(names.POD_INDEX)
        own = whole_number(pod.labels.get(names.POD_INDEX))
        if own is None:
            own = whole_number(pod.name.removeprefix(f"{self.owner.name}-"))
        return label(names.POD_INDEX) if own is None else str(own - self._start)

    def size(self) -> int:
        """Return the number of replicas."""
        return 1 if self._spec.replicas is None else self._spec.replicas

    def subdomain(self) -> str:
        """Return the name of the StatefulSet's Service."""
        return self._spec.service_name

    def endpoints(self) -> Endpoints:
        """Return the host names `<stateful set>-<ordinal>.<service>`."""
        return NumberedNames(f"{self.owner.name}-", f".{self.subdomain()}", self.size(), self._start)

    @property
    def _minimum(self) -> int:
        template = (self._spec.template.get("metadata") or {}).get("annotations") or {}
        given = {**template, **self.annotations}
        least = (whole_number(given.get(key)) for key in names.MIN_MEMBER_KEYS)
        return min(next(filter(None, least), self.size()), self.size())


def _replicas(owner: StatefulSet | ReplicaSet) -> int:
    """Return the number of pods that an owner has at a time; during a rollout, only the new ReplicaSet counts."""
    return max(1, 1 if owner.spec.replicas is None else owner.spec.replicas)


def _samples(stateful_set: JSON, /, *, every: bool = False) -> Iterator[SamplePod]:
    """Yield the first pod of a StatefulSet or, with `every`, all pods.

    Pods of a LeaderWorkerSet's StatefulSet have the labels that LeaderWorkerSet's webhook writes.
    """
    spec = mapping(stateful_set.get("spec"))
    start = msgspec.convert(mapping(spec.get("ordinals")).get("start", 0), int)
    template = mapping(spec.get("template"))
    given = mapping(mapping(template.get("metadata")).get("labels"))
    for ordinal in map(str, range(start, start + (count(spec, "replicas") if every else 1))):
        labels = {names.POD_INDEX: ordinal, **place_of_pod(given, ordinal)}
        name = f"{name_of(stateful_set)}-{ordinal}"
        place = {"hostname": name, "subdomain": spec.get("serviceName", "")}
        pod = pod_of(stateful_set, template, name, labels, place)
        yield SamplePod(pod, f"the first pod of StatefulSet {name_of(stateful_set)}")


STATEFUL_SET = WorkloadKind(
    STATEFUL_SETS,
    labelled=True,
    one_template=True,
    ranks=Ranks(
        lambda owner, _pod: StatefulSetAdapter(owner),
        STATEFUL_SETS,
        index=names.POD_INDEX,
        recommended_as="a StatefulSet",
    ),
    gang=GangRules(at_once=_replicas, wants_none=lambda owner: owner.spec.replicas == 0),
    admission=Admission(service_name=("spec", "serviceName")),
    samples=_samples,
    verbs=replicated((TEMPLATE,), claims=("spec",)),
)


def _of_deployment(deployment: JSON, /, *, every: bool = False) -> Iterator[SamplePod]:
    """Yield a pod of the ReplicaSet that the controller would create, or all pods, with copied annotations."""
    replica_set = part_of(deployment, REPLICA_SETS, f"{name_of(deployment)}-1", mapping(deployment.get("spec")))
    replica_set["metadata"]["annotations"] = mapping(deployment["metadata"].get("annotations"))
    spec = replica_set["spec"]
    about = f"a pod of Deployment {name_of(deployment)}"
    for number in range(1, 1 + (count(spec, "replicas") if every else 1)):
        pod = pod_of(replica_set, mapping(spec.get("template")), f"{name_of(replica_set)}-{number}", {}, {})
        yield SamplePod(pod, about, replica_set)


DEPLOYMENT = WorkloadKind(
    DEPLOYMENTS, labelled=True, names_gangs=True, samples=_of_deployment, verbs=replicated((TEMPLATE,))
)
REPLICA_SET = WorkloadKind(
    REPLICA_SETS,
    one_template=True,
    no_ranks="pods of a ReplicaSet (or Deployment) have no index, so none of them has a rank",
    gang=GangRules(at_once=_replicas, wants_none=lambda owner: owner.spec.replicas == 0),
)
DAEMON_SET = WorkloadKind(
    DAEMON_SETS,
    one_node_each=True,
    no_ranks="pods of a DaemonSet have no index, so none of them has a rank",
    gang=GangRules(),
)
REPLICATION_CONTROLLER = WorkloadKind(
    REPLICATION_CONTROLLERS,
    one_template=True,
    no_ranks="pods of a ReplicationController have no index, so none of them has a rank",
)

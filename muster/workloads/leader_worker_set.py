"""LeaderWorkerSets, whose pods belong to StatefulSets; each group of a leader and its workers is a world."""

from collections.abc import Iterator, Mapping

from muster.api import names
from muster.api.base import Resource
from muster.api.fields import FieldError
from muster.api.kubernetes.apps import STATEFUL_SETS, StatefulSet
from muster.api.kubernetes.endpoints import Endpoints, Joined, NumberedNames
from muster.api.kubernetes.meta import Object, ObjectMeta
from muster.api.limits import PODS, whole_number
from muster.workloads.adapter import Adapter, Owner, Value, label
from muster.workloads.kind import (
    Admission,
    FrameworkWorld,
    GangRules,
    Place,
    PodContext,
    Ranks,
    WorkloadKind,
    replicated,
)
from muster.workloads.sample import JSON, SamplePod, count, mapping, name_of, part_of, pod_of

LWS_NAME = "leaderworkerset.sigs.k8s.io/name"
LWS_GROUP = "leaderworkerset.sigs.k8s.io/group-index"
LWS_WORKER = "leaderworkerset.sigs.k8s.io/worker-index"
LWS_SIZE = "leaderworkerset.sigs.k8s.io/size"
EXCLUSIVE = "leaderworkerset.sigs.k8s.io/exclusive-topology"

_RESOURCE = Resource("leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "LeaderWorkerSet", Object)
_GROUP = ("spec", "leaderWorkerTemplate")
_TEMPLATES = ((*_GROUP, "leaderTemplate"), (*_GROUP, "workerTemplate"))


class LeaderWorkerSetAdapter(Adapter):
    """Adapter of a group of a LeaderWorkerSet, whose leader has rank 0, and whose workers follow.

    Each group is a separate world. The pod template comes from the StatefulSet; the adapter reads all other data from
    the pod itself.
    """

    def __init__(self, stateful_set: StatefulSet, pod: ObjectMeta, subdomain: str) -> None:
        self._pod = pod
        self._name = pod.labels.get(LWS_NAME, "")
        self._subdomain = subdomain or stateful_set.spec.service_name or self._name
        # without a UID, which neither the pod nor its StatefulSet has in all cases
        owner = Owner(_RESOURCE.api_version, _RESOURCE.kind, self._name, stateful_set.metadata.namespace)
        super().__init__(owner, stateful_set.spec.template, stateful_set.metadata.annotations)

    def errors(self) -> list[FieldError]:
        """Reject a pod if LeaderWorkerSet's own webhook has not written the pod's position into it."""
        result = []
        if not self.size():
            message = f"must be set by the LeaderWorkerSet controller for {names.FRAMEWORK}"
            result.append(FieldError(f"metadata.annotations[{LWS_SIZE}]", message, self._pod.annotations.get(LWS_SIZE)))
        for key in (LWS_GROUP, LWS_WORKER):
            if whole_number(self._pod.labels.get(key)) is None:
                message = (
                    f"must be set before Muster's webhook is called, for {names.FRAMEWORK}: the configuration of the "
                    "LeaderWorkerSet webhook must be first by name"
                )
                result.append(FieldError(f"metadata.labels[{key}]", message, self._pod.labels.get(key)))
        return [*result, *PODS.exceeded(f"metadata.annotations[{LWS_SIZE}]", self.size())]

    def rank(self, pod: ObjectMeta | None) -> Value:
        """Return the source of the pod's index in its group, which is 0 for the leader."""
        return label(LWS_WORKER)

    def size(self) -> int:
        """Return the number of pods of one group: its leader and workers."""
        return whole_number(self._pod.annotations.get(LWS_SIZE)) or 0

    def subdomain(self) -> str:
        """Return the pod's subdomain, otherwise its StatefulSet's Service, otherwise the LeaderWorkerSet's name."""
        return self._subdomain

    def endpoints(self) -> Endpoints:
        """Return the host names `<set>-<group>.<subdomain>` (leader), `<set>-<group>-<index>.<subdomain>` (workers)."""
        leader = f"{self._name}-{self._pod.labels.get(LWS_GROUP, '')}"
        suffix = f".{self.subdomain()}"
        workers = NumberedNames(f"{leader}-", suffix, max(self.size() - 1, 0), start=1)
        return Joined(((f"{leader}{suffix}",), workers))


def place_of_pod(labels: JSON, ordinal: str) -> dict[str, str]:
    """Return the labels that LeaderWorkerSet's webhook writes to a pod of a StatefulSet with these template labels.

    The ordinal of a leader is the index of its group. The ordinal of a worker is its own index; the labels of the
    worker's template contain the group's index.
    """
    if LWS_NAME not in labels:
        return {}
    return {LWS_WORKER if LWS_GROUP in labels else LWS_GROUP: ordinal}


def _adapter(stateful_set: StatefulSet, pod: PodContext) -> LeaderWorkerSetAdapter | None:
    return LeaderWorkerSetAdapter(stateful_set, pod.meta, pod.spec.subdomain) if LWS_NAME in pod.meta.labels else None


def _world(pod: ObjectMeta) -> str:
    """Return the name of the gang that a group's leader and workers form, although they belong to two StatefulSets."""
    labels = pod.labels
    return f"podgroup-lws-{labels[LWS_NAME]}.{labels[LWS_GROUP]}" if LWS_NAME in labels and LWS_GROUP in labels else ""


def _mistakes(workload: JSON, together: Mapping[Place, str]) -> list[FieldError]:
    """Return errors for settings that delay the creation of workers: LeaderReady and an exclusive topology."""
    spec, annotations = mapping(workload.get("spec")), mapping(mapping(workload.get("metadata")).get("annotations"))
    policy, size = spec.get("startupPolicy"), mapping(spec.get("leaderWorkerTemplate")).get("size", 1)
    if names.FRAMEWORK not in together.values() or size == 1:
        return []
    result = []
    if policy == "LeaderReady":
        message = (
            f"must be LeaderCreated for gangs ({names.FRAMEWORK}): leader and workers start together, but with "
            "LeaderReady the workers are created only when the leader is ready"
        )
        result.append(FieldError("spec.startupPolicy", message, policy))
    if EXCLUSIVE in annotations:
        level = annotations[EXCLUSIVE]
        message = (
            f"must be left out for gangs ({names.FRAMEWORK}): leader and workers start together, but with an exclusive "
            "topology the workers are created only when the leader has a node; to keep each group in one domain, set "
            f"{names.TOPOLOGY_NEAR_KEYS[0]}: {level}"
        )
        result.append(FieldError(f"metadata.annotations[{EXCLUSIVE}]", message, level))
    return result


def _samples(workload: JSON, /, *, every: bool = False) -> Iterator[SamplePod]:
    """Yield the first group's leader, and a worker if workers have their own template; with `every`, yield all pods."""
    spec = mapping(workload.get("spec"))
    template = mapping(spec.get("leaderWorkerTemplate"))
    size = count(template, "size")
    worker = mapping(template.get("workerTemplate"))
    leader = mapping(template.get("leaderTemplate")) or worker
    name = name_of(workload)
    shown = size if every else min(size, 2 if template.get("leaderTemplate") else 1)
    members = ((group, index) for group in range(count(spec, "replicas") if every else 1) for index in range(shown))
    for group, index in members:
        pods = worker if index else leader
        owner = part_of(workload, STATEFUL_SETS, f"{name}-{group}" if index else name, {"template": pods})
        owner["spec"]["serviceName"] = name
        labels = {LWS_NAME: name, LWS_GROUP: str(group), LWS_WORKER: str(index)}
        host = f"{name}-{group}-{index}" if index else f"{name}-{group}"
        pod = pod_of(owner, pods, host, labels, {"hostname": host, "subdomain": name})
        pod["metadata"]["annotations"] = {**mapping(pod["metadata"].get("annotations")), LWS_SIZE: str(size)}
        what = "first worker" if index else "leader"
        yield SamplePod(pod, f"the {what} of the first group of LeaderWorkerSet {name}", owner)


LEADER_WORKER_SET = WorkloadKind(
    _RESOURCE,
    templates=_TEMPLATES,
    labelled=True,
    names_gangs=True,
    ranks=Ranks(_adapter, STATEFUL_SETS, name_label=LWS_NAME, recommended_as="a LeaderWorkerSet"),
    gang=GangRules(),  # without a framework, each StatefulSet of the set is a gang, with labels of the set
    # a group without pods has been scaled away, or will be created again
    world=FrameworkWorld(_world, GangRules(wants_none=lambda _workload: True)),
    admission=Admission(mistakes=_mistakes),
    samples=_samples,
    verbs=replicated(_TEMPLATES, scales=True, claims=_GROUP, group_size=(*_GROUP, "size")),
)

"""Pods without an owner, whose rank, size and leader are in their annotations."""

from muster.api import limits, names
from muster.api.fields import FieldError
from muster.api.kubernetes.core import PODS
from muster.api.kubernetes.endpoints import Endpoints
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.limits import whole_number
from muster.api.unchecked import mapping
from muster.workloads.adapter import Adapter, Owner, Value, annotation
from muster.workloads.kind import PodContext, Ranks, Verbs, WorkloadKind, again


class BarePodAdapter(Adapter):
    """Adapter of a pod with annotations for its rank, the number of pods and the host name of rank 0.

    A pod without these annotations is the only one in its world. The host names of the other pods are unknown.
    Frameworks that need all host names (MPI, TensorFlow) therefore get only the leader's.
    """

    def __init__(self, pod: PodContext) -> None:
        self._meta = pod.meta
        self._spec = pod.spec
        meta = pod.meta
        owner = Owner(PODS.api_version, PODS.kind, meta.name or meta.generate_name, meta.namespace, meta.uid)
        super().__init__(owner, pod.document, {})

    def errors(self) -> list[FieldError]:
        """Reject annotations for rank, size and leader that contradict each other; a single pod needs none."""
        rank, size = self._given(names.RANK), self._given(names.SIZE)
        result = []
        for key, text, least in ((names.RANK, rank, 0), (names.SIZE, size, 1)):
            value = whole_number(text)
            if text is not None and (value is None or value < least):
                result.append(FieldError(_path(key), f"must be a number of at least {least}", text))
        result += limits.PODS.exceeded(_path(names.SIZE), self.size())
        if (rank is None) != (size is None):
            missing = names.RANK if rank is None else names.SIZE
            message = f"must be set as well as {names.SIZE if rank is None else names.RANK}"
            result.append(FieldError(_path(missing), message, reason="Required"))
        if not result and rank is not None and (whole_number(rank) or 0) >= self.size():
            message = f"must be less than {names.SIZE} ({self.size()}), because ranks start at 0"
            result.append(FieldError(_path(names.RANK), message, rank))
        if not result and self.size() > 1 and not self._given(names.LEADER) and self._own is None:
            message = "must be the host name of rank 0, e.g. <hostname>.<subdomain> of that pod"
            result.append(FieldError(_path(names.LEADER), message, reason="Required"))
        return result

    def rank(self, pod: ObjectMeta | None) -> Value:
        """Return the annotation with the pod's rank, or 0 without this annotation."""
        return annotation(names.RANK) if self._given(names.RANK) is not None else "0"

    def size(self) -> int:
        """Return the number of pods in the annotation, or 1 without this annotation."""
        return whole_number(self._given(names.SIZE)) or 1

    def subdomain(self) -> str:
        """Return the pod's subdomain."""
        return self._spec.subdomain

    def endpoints(self) -> Endpoints:
        """Return the leader's host name, and empty names for other pods."""
        leader = self._given(names.LEADER) or self._own or "127.0.0.1"
        return (leader, *[""] * (self.size() - 1))

    @property
    def _own(self) -> str | None:
        """Return the pod's own host name if it is the leader and has a DNS name, otherwise None."""
        if self._given(names.RANK) not in {None, "0"} or not (self._spec.hostname and self._spec.subdomain):
            return None
        return f"{self._spec.hostname}.{self._spec.subdomain}"

    def _given(self, key: str) -> str | None:
        return self._meta.annotations.get(key)


def _path(key: str) -> str:
    return f"metadata.annotations[{key}]"


POD = WorkloadKind(
    PODS,
    templates=(),
    ranks=Ranks(lambda _owner, pod: BarePodAdapter(pod), controller=None),
    verbs=Verbs(
        ended=lambda pod: mapping(pod.get("status")).get("phase") in {"Succeeded", "Failed"},
        instead={
            "hold": again("a single pod cannot stop and start again"),
            "release": "a single pod cannot be held, so there is nothing to release",
            "resize": again("a single pod has no number of pods"),
            "priority": again("a pod keeps its class"),
        },
    ),
)

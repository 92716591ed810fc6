"""StatefulSets, and the LeaderWorkerSets that are made of them."""

from collections.abc import Mapping
from typing import Any

from muster.api import names
from muster.api.apps import StatefulSet
from muster.api.endpoints import Endpoints, Joined, Run
from muster.api.fields import FieldError
from muster.api.meta import ObjectMeta
from muster.runtime.adapters.base import label, number, ordinal
from muster.runtime.plan import Owner
from muster.runtime.values import Value

LWS_NAME = "leaderworkerset.sigs.k8s.io/name"
LWS_GROUP = "leaderworkerset.sigs.k8s.io/group-index"
LWS_WORKER = "leaderworkerset.sigs.k8s.io/worker-index"
LWS_SIZE = "leaderworkerset.sigs.k8s.io/size"


class StatefulSetAdapter:
    """A StatefulSet: the rank is the ordinal, counted from `spec.ordinals.start`."""

    def __init__(self, stateful_set: StatefulSet) -> None:
        self._set = stateful_set
        self._spec = stateful_set.spec

    @property
    def owner(self) -> Owner:
        """The StatefulSet."""
        meta = self._set.metadata
        return Owner("apps/v1", "StatefulSet", meta.name, meta.namespace, meta.uid)

    @property
    def template(self) -> Mapping[str, Any]:
        """The StatefulSet's."""
        return self._spec.template

    @property
    def annotations(self) -> Mapping[str, str]:
        """The StatefulSet's."""
        return self._set.metadata.annotations

    def errors(self) -> list[FieldError]:
        """Pods need a name in DNS, and a gang whose pods wait for each other must not be created one by one."""
        result = []
        if not self._spec.service_name:
            message = f"must name a headless Service for {names.FRAMEWORK}: the pods find each other under it"
            result.append(FieldError("spec.serviceName", message, reason="Required"))
        minimum = self._minimum
        if self._spec.pod_management_policy != "Parallel" and minimum > 1:
            message = (
                f"must be Parallel: the gang waits for {minimum} pods, and OrderedReady creates each pod only when "
                "the one before is ready"
            )
            result.append(FieldError("spec.podManagementPolicy", message, self._spec.pod_management_policy))
        return result

    def rank(self, pod: ObjectMeta | None) -> Value:
        """The label with the ordinal (Kubernetes 1.28); a literal where ordinals don't start at 0 or it is missing."""
        if pod is None or (names.POD_INDEX in pod.labels and not self._start):
            return label(names.POD_INDEX)
        own = number(pod.labels.get(names.POD_INDEX))
        own = ordinal(pod, self._set.metadata.name) if own is None else own
        return label(names.POD_INDEX) if own is None else str(own - self._start)

    def size(self) -> int:
        """All replicas."""
        return 1 if self._spec.replicas is None else self._spec.replicas

    def subdomain(self) -> str:
        """The Service of the StatefulSet."""
        return self._spec.service_name

    def endpoints(self) -> Endpoints:
        """`<stateful set>-<ordinal>.<service>`."""
        return Run(f"{self._set.metadata.name}-", f".{self.subdomain()}", self.size(), self._start)

    @property
    def _start(self) -> int:
        return self._spec.ordinals.start if self._spec.ordinals else 0

    @property
    def _minimum(self) -> int:
        template = (self._spec.template.get("metadata") or {}).get("annotations") or {}
        return number({**template, **self.annotations}.get(names.MIN_MEMBER)) or 1


class LeaderWorkerSetAdapter:
    """A group of a LeaderWorkerSet: its leader is rank 0, its workers follow. Each group is a world of its own.

    Everything but the template stands on the pod itself; the StatefulSet is only asked for that.
    """

    def __init__(self, stateful_set: StatefulSet, pod: ObjectMeta, subdomain: str) -> None:
        self._set = stateful_set
        self._pod = pod
        self._subdomain = subdomain

    @property
    def owner(self) -> Owner:
        """The LeaderWorkerSet, by its name: neither the pod nor its StatefulSet has the UID in all cases."""
        return Owner("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", self._name, self._set.metadata.namespace)

    @property
    def template(self) -> Mapping[str, Any]:
        """That of the StatefulSet."""
        return self._set.spec.template

    @property
    def annotations(self) -> Mapping[str, str]:
        """Those of the StatefulSet."""
        return self._set.metadata.annotations

    def errors(self) -> list[FieldError]:
        """The LeaderWorkerSet's own webhook has to have told the pod its place."""
        result = []
        if not self.size():
            message = f"must be set by the LeaderWorkerSet controller for {names.FRAMEWORK}"
            result.append(FieldError(f"metadata.annotations[{LWS_SIZE}]", message, self._pod.annotations.get(LWS_SIZE)))
        for key in (LWS_GROUP, LWS_WORKER):
            if number(self._pod.labels.get(key)) is None:
                message = (
                    f"must be set before Muster's webhook is asked, for {names.FRAMEWORK}: the configuration of the "
                    "LeaderWorkerSet webhook must come first by name"
                )
                result.append(FieldError(f"metadata.labels[{key}]", message, self._pod.labels.get(key)))
        return result

    def rank(self, pod: ObjectMeta | None) -> Value:
        """The index in the group: the leader has 0."""
        del pod
        return label(LWS_WORKER)

    def size(self) -> int:
        """Leader and workers of one group."""
        return number(self._pod.annotations.get(LWS_SIZE)) or 0

    def subdomain(self) -> str:
        """What the pod says, else that of its StatefulSet, else the LeaderWorkerSet's name."""
        return self._subdomain or self._set.spec.service_name or self._name

    def endpoints(self) -> Endpoints:
        """`<set>-<group>.<subdomain>` for the leader, `<set>-<group>-<index>.<subdomain>` for workers."""
        leader = f"{self._name}-{self._pod.labels.get(LWS_GROUP, '')}"
        suffix = f".{self.subdomain()}"
        workers = Run(f"{leader}-", suffix, max(self.size() - 1, 0), start=1)
        return Joined(((f"{leader}{suffix}",), workers))

    @property
    def _name(self) -> str:
        return self._pod.labels.get(LWS_NAME, "")

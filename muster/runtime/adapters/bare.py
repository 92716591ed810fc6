"""Pods without an owner: they know only what the user writes on them."""

from collections.abc import Mapping
from typing import Any

from muster.api.core import PodSpec
from muster.api.endpoints import Endpoints
from muster.api.fields import FieldError
from muster.api.meta import ObjectMeta
from muster.runtime.adapters.base import annotation, number
from muster.runtime.plan import Owner
from muster.runtime.settings import LEADER, RANK, SIZE
from muster.runtime.settings import annotation as key_of
from muster.runtime.values import Value


class BarePodAdapter:
    """A pod with annotations for its rank, the number of pods and the host name of rank 0.

    Without any of them the pod is alone in its world. The other pods' names are not known, so frameworks that need
    all of them (MPI, TensorFlow) get the leader's only.
    """

    def __init__(self, meta: ObjectMeta, spec: PodSpec, template: Mapping[str, Any]) -> None:
        self._meta = meta
        self._spec = spec
        self._template = template

    @property
    def owner(self) -> Owner:
        """The pod itself."""
        return Owner("v1", "Pod", self._meta.name or self._meta.generate_name, self._meta.namespace, self._meta.uid)

    @property
    def template(self) -> Mapping[str, Any]:
        """The pod itself."""
        return self._template

    @property
    def annotations(self) -> Mapping[str, str]:
        """None but its own."""
        return {}

    def errors(self) -> list[FieldError]:
        """Rank, size and leader must fit together; a pod alone needs none of them."""
        rank, size = self._given(RANK), self._given(SIZE)
        result = []
        for key, text, least in ((RANK, rank, 0), (SIZE, size, 1)):
            value = number(text)
            if text is not None and (value is None or value < least):
                result.append(FieldError(_path(key), f"must be a number of at least {least}", text))
        if (rank is None) != (size is None):
            missing = RANK if rank is None else SIZE
            message = f"must be set as well as {key_of(SIZE if rank is None else RANK)}"
            result.append(FieldError(_path(missing), message, reason="Required"))
        if not result and rank is not None and int(rank) >= self.size():
            message = f"must be less than {key_of(SIZE)} ({self.size()}), because ranks start at 0"
            result.append(FieldError(_path(RANK), message, rank))
        if not result and self.size() > 1 and not self._given(LEADER) and self._own is None:
            message = "must be the host name of rank 0, e.g. <hostname>.<subdomain> of that pod"
            result.append(FieldError(_path(LEADER), message, reason="Required"))
        return result

    def rank(self, pod: ObjectMeta | None) -> Value:
        """The annotation."""
        del pod
        return annotation(key_of(RANK)) if self._given(RANK) is not None else "0"

    def size(self) -> int:
        """The annotation, else 1."""
        return number(self._given(SIZE)) or 1

    def subdomain(self) -> str:
        """What the pod says."""
        return self._spec.subdomain

    def endpoints(self) -> Endpoints:
        """The leader, and empty names for the others."""
        leader = self._given(LEADER) or self._own or "127.0.0.1"
        return (leader, *[""] * (self.size() - 1))

    @property
    def _own(self) -> str | None:
        """The pod's own host name, if it is the leader and has one in DNS."""
        if self._given(RANK) not in {None, "0"} or not (self._spec.hostname and self._spec.subdomain):
            return None
        return f"{self._spec.hostname}.{self._spec.subdomain}"

    def _given(self, key: str) -> str | None:
        return self._meta.annotations.get(key_of(key))


def _path(key: str) -> str:
    return f"metadata.annotations[{key_of(key)}]"

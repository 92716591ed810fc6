"""The adapter of a pod, by the pod's controller and the labels of its higher owners."""

from typing import Any

from muster.api.base import Resource
from muster.api.kubernetes.meta import Object, ObjectMeta
from muster.workloads.adapter import Adapter, OwnerError
from muster.workloads.kind import AskedPod
from muster.workloads.table import CONTROLLERS, KINDS

_NO_RANKS = {kind.resource.kind: kind.no_ranks for kind in KINDS if kind.no_ranks}
_CALLED = [kind.ranks.called for kind in KINDS if kind.ranks and kind.ranks.called]
_ADVICE = f"; use {', '.join(_CALLED[:-1])} or {_CALLED[-1]}"
_NO_POD = AskedPod()


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

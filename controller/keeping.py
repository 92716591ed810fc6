"""The pods in the controller's cache: members of Jobs without the fields that no rule reads, equal parts shared.

A whole pod is some 10 KiB, and there may be 50,000. Variables, commands, volumes and affinity of a member follow from
its Job, and no controller reads them. Pods of other workloads are kept whole: their templates are read from them
(`controller.gangs.rendezvous`).
"""

from collections.abc import Hashable
from functools import lru_cache
from typing import Any, TypeVar, cast

import msgspec
from msgspec import structs

from muster.api.kubernetes.core import Container, Pod
from muster.api.kubernetes.meta import OwnerReference, ReportedCondition
from muster.volcano.tasks import job_of_pod

T = TypeVar("T")


def kept(pod: Pod) -> Pod:
    """A member of a Job without the fields that only its node needs; any other pod as it is."""
    if job_of_pod(pod.metadata) is None:
        return pod
    spec = structs.replace(
        pod.spec,
        containers=_shared([_kept(container) for container in pod.spec.containers], list[Container]),
        init_containers=_shared([_kept(container) for container in pod.spec.init_containers], list[Container]),
        volumes=[],
        affinity=None,
        tolerations=[],
        topology_spread_constraints=[],
    )
    owners = _shared(pod.metadata.owner_references, list[OwnerReference])
    conditions = _shared(pod.status.conditions, list[ReportedCondition])
    return structs.replace(
        pod,
        metadata=structs.replace(pod.metadata, owner_references=owners),
        spec=spec,
        status=structs.replace(pod.status, conditions=conditions),
    )


def _kept(container: Container) -> Container:
    """The container with its name and resources only."""
    return Container(name=container.name, resources=container.resources, restart_policy=container.restart_policy)


def _shared(value: T, kind: type[T]) -> T:
    """An equal value that pods share, so it must not be changed."""
    return cast("T", _decoded(msgspec.json.encode(value), cast("Hashable", kind)))


@lru_cache(maxsize=4096)
def _decoded(text: bytes, kind: Any) -> object:
    return msgspec.json.decode(text, type=kind)

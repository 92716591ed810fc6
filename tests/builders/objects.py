"""Objects as Muster's processes read them: the manifests of `builders.manifests`, decoded."""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import msgspec
from builders import manifests

from muster.api.kubeflow.trainer import TrainJob
from muster.api.kubernetes.core import IndexedJob, Node, Pod
from muster.api.kubernetes.meta import OwnerReference
from muster.api.muster.placement import Placement
from muster.api.volcano.batch import Job
from muster.api.volcano.scheduling import PodGroup, Queue

T = TypeVar("T")
P = ParamSpec("P")


def read(kind: type[T], make: Callable[P, manifests.JSON]) -> Callable[P, T]:
    """Return a builder of objects of this kind that takes the arguments of a builder of manifests."""

    @wraps(make)
    def build(*arguments: P.args, **more: P.kwargs) -> T:
        return msgspec.convert(make(*arguments, **more), kind)

    return build


batch_job = read(IndexedJob, manifests.batch_job)
job = read(Job, manifests.job)
job_owner = read(OwnerReference, manifests.job_owner)
node = read(Node, manifests.node)
placement = read(Placement, manifests.placement)
pod = read(Pod, manifests.pod)
pod_group = read(PodGroup, manifests.pod_group)
queue = read(Queue, manifests.queue)
train_job = read(TrainJob, manifests.train_job)


def members(gang: str, nodes: list[str], namespace: str = "ns", *, task: str = "worker", **more: Any) -> list[Pod]:
    """Return the pods of a gang, see `manifests.members`."""
    return [msgspec.convert(each, Pod) for each in manifests.members(gang, nodes, namespace, task=task, **more)]

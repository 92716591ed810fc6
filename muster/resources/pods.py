"""What a pod asks for, computed as kube-scheduler does, and what a node has.

Init containers run one after the other before the containers, so the largest of them counts, not their sum. A sidecar
(an init container that restarts always) goes on running: it counts with the containers and with the init containers
after it. Pod-level resources replace the sum of the containers; the overhead of the runtime class comes on top.
"""

from collections.abc import Callable
from typing import NamedTuple

from muster.api.kubernetes.core import Container, Node, Pod, PodSpec
from muster.api.kubernetes.requirements import Quantities, ResourceRequirements
from muster.resources.vector import CPU, PODS, Vector, add, maximum, vector

_HUGE_PAGES = "hugepages-"


def pod_requests(spec: PodSpec) -> Vector:
    """What the pod takes from a node, always with one of `pods`; ValueError names a quantity that is wrong."""
    return _total(spec, lambda container: _requests(container.resources), _nothing)


class AmountsOnNode(NamedTuple):
    """What kubelet says that a pod has, which need not be what it asks for."""

    containers: dict[str, tuple[ResourceRequirements, Quantities]]
    """Name → what it has, and what is set aside for it."""
    whole: ResourceRequirements | None
    """What the pod has as a whole, where resources are given for the pod."""
    whole_allocated: Quantities
    infeasible: bool
    """What is asked for can never be."""


def amounts_on_node(pod: Pod) -> AmountsOnNode | None:
    """What kubelet says of a pod; None if it says nothing."""
    status = pod.status
    containers = {
        each.name: (each.resources, each.allocated_resources)
        for each in (*status.init_container_statuses, *status.container_statuses)
        if each.resources is not None
    }
    if not containers and status.resources is None:
        return None
    infeasible = any(
        condition.type == "PodResizePending" and condition.status == "True" and condition.reason == "Infeasible"
        for condition in status.conditions
    )
    return AmountsOnNode(containers, status.resources, status.allocated_resources, infeasible)


def requests_on_node(pod: Pod) -> Vector:
    """What a pod that has a node takes of it: a resize that is not carried out yet counts with both amounts.

    As kube-scheduler 1.36 counts: the most of what was asked for, what kubelet has set aside and what containers have;
    without what was asked for where kubelet says that it can never be.
    """
    on_node = amounts_on_node(pod)
    if on_node is None:
        return pod_requests(pod.spec)

    def of_container(container: Container) -> Vector:
        asked, told = _requests(container.resources), on_node.containers.get(container.name)
        ordinary = container in pod.spec.init_containers and not _is_sidecar(container)
        if told is None or ordinary:
            return asked
        resources, allocated = told
        has = maximum(vector(resources.requests), vector(allocated))
        return has if on_node.infeasible else maximum(asked, has)

    def of_pod() -> Vector:
        has = on_node.whole.requests if on_node.whole is not None else {}
        return maximum(vector(has), vector(on_node.whole_allocated)) if has else {}

    return _total(pod.spec, of_container, of_pod, infeasible=on_node.infeasible)


def _nothing() -> Vector:
    return {}


def _total(
    spec: PodSpec, of: Callable[[Container], Vector], of_pod: Callable[[], Vector], *, infeasible: bool = False
) -> Vector:
    """Containers, what the pod has as a whole in their place (`of_pod`: has already), overhead, and one of `pods`."""
    result = _container_requests(spec, of)
    if spec.resources:
        wanted, has = _pod_level_requests(spec.resources, result), _of_pods(of_pod())
        result |= (has if infeasible else maximum(wanted, has)) if has else wanted
    if spec.overhead:
        result = add(result, vector(spec.overhead))
    result[PODS] = 1
    return result


def resource_names(spec: PodSpec) -> set[str]:
    """Every resource that the pod names in a request or limit."""
    asked = [container.resources for container in (*spec.containers, *spec.init_containers)]
    asked += [spec.resources] if spec.resources else []
    return {name for each in asked for name in (*each.requests, *each.limits)} | set(spec.overhead or ())


def node_allocatable(node: Node) -> Vector:
    """What the node has for pods."""
    return vector(node.status.allocatable)


def _requests(resources: ResourceRequirements) -> Vector:
    """The requests, with a limit standing in where a request is missing, as the API server fills it in."""
    return vector({**resources.limits, **resources.requests})


def _container_requests(spec: PodSpec, of: Callable[[Container], Vector]) -> Vector:
    running: Vector = {}
    for container in spec.containers:
        running = add(running, of(container))
    sidecars: Vector = {}
    starting: Vector = {}
    for container in spec.init_containers:
        requests = of(container)
        if _is_sidecar(container):
            running = add(running, requests)
            sidecars = add(sidecars, requests)
            starting = maximum(starting, sidecars)
        else:
            starting = maximum(starting, add(sidecars, requests))
    return maximum(running, starting)


def _is_sidecar(container: Container) -> bool:
    return container.restart_policy == "Always"


def _pod_level_requests(resources: ResourceRequirements, containers: Vector) -> Vector:
    """Only CPU, memory and huge pages exist at pod level; a limit without a request counts where no container asks."""
    limits = {
        name: amount
        for name, amount in vector(resources.limits).items()
        if name not in containers or name.startswith(_HUGE_PAGES)
    }
    wanted = {**limits, **vector(resources.requests)}
    return _of_pods(wanted)


def _of_pods(amounts: Vector) -> Vector:
    return {name: n for name, n in amounts.items() if name in {CPU, "memory"} or name.startswith(_HUGE_PAGES)}

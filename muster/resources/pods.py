"""What a pod asks for, computed as kube-scheduler does, and what a node has.

Init containers run one after the other before the containers, so the largest of them counts, not their sum. A sidecar
(an init container that restarts always) goes on running: it counts with the containers and with the init containers
after it. Pod-level resources replace the sum of the containers; the overhead of the runtime class comes on top.
"""

from muster.api.core import Container, Node, PodSpec, ResourceRequirements
from muster.resources.vector import CPU, PODS, Vector, add, maximum, vector

_HUGE_PAGES = "hugepages-"


def pod_requests(spec: PodSpec) -> Vector:
    """What the pod takes from a node, always with one of `pods`; ValueError names a quantity that is wrong."""
    result = _container_requests(spec)
    if spec.resources:
        result |= _pod_level_requests(spec.resources, result)
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


def _container_requests(spec: PodSpec) -> Vector:
    running: Vector = {}
    for container in spec.containers:
        running = add(running, _requests(container.resources))
    sidecars: Vector = {}
    starting: Vector = {}
    for container in spec.init_containers:
        requests = _requests(container.resources)
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
    return {name: n for name, n in wanted.items() if name in {CPU, "memory"} or name.startswith(_HUGE_PAGES)}

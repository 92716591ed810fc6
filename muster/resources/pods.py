"""Requests of a pod (as in kube-scheduler), a pod's usage of a ResourceQuota, and a node's allocatable resources.

All functions are pure. Init containers run one after another, before the containers, so their maximum is counted and
not their sum. A sidecar (an init container that always restarts) keeps running, so it counts with the containers and
with later init containers. Pod-level resources replace the sum over the containers; the overhead of the runtime class
is added.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from msgspec import convert, structs

from muster.api.kubernetes.core import Container, Node, Pod, PodSpec, Quantities, ResourceRequirements
from muster.resources.vector import CPU, PODS, Vector, add, maximum, scale, to_quantities, vector

_HUGE_PAGES = "hugepages-"


def pod_requests(spec: PodSpec) -> Vector:
    """Return the requests of the pod, including 1 of the resource `pods`; a ValueError names an invalid quantity."""
    return _total(spec, lambda container: _requests(container.resources), {})


class AmountsOnNode(NamedTuple):
    """Resources that the kubelet reports in a pod's status, which may differ from the requests during a resize."""

    containers: dict[str, tuple[ResourceRequirements, Quantities]]
    """Maps a container to its actual resources, and to the resources allocated to it."""
    whole: ResourceRequirements | None
    """Actual resources of the pod as a whole, if its spec sets resources at pod level."""
    whole_allocated: Quantities
    infeasible: bool
    """True if the kubelet reports that the requested resize is impossible."""


def amounts_on_node(pod: Pod) -> AmountsOnNode | None:
    """Return the resources in a pod's status; None if the status contains no resources."""
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
    """Return the resources that a pod uses on its node; during a resize, the larger of old and new quantities.

    kube-scheduler up to 1.36 adds up, over the containers, the maximum of requested, allocated and actual resources.
    Requested resources are not counted if the kubelet reports that the resize is infeasible. Since 1.37, kube-scheduler
    adds up requested, allocated and actual resources separately, and takes the largest sum. This sum is smaller if some
    containers grow while others shrink. This function returns the larger value, which is safe for both versions.
    """
    on_node = amounts_on_node(pod)
    if on_node is None:
        return pod_requests(pod.spec)

    def of_container(container: Container) -> Vector:
        asked, actual = _requests(container.resources), on_node.containers.get(container.name)
        ordinary = container in pod.spec.init_containers and not _is_sidecar(container)
        if actual is None or ordinary:
            return asked
        resources, allocated = actual
        has = maximum(vector(resources.requests), vector(allocated))
        return has if on_node.infeasible else maximum(asked, has)

    has = on_node.whole.requests if on_node.whole is not None else {}
    whole = maximum(vector(has), vector(on_node.whole_allocated)) if has else {}
    return _total(pod.spec, of_container, whole, infeasible=on_node.infeasible)


def _total(spec: PodSpec, of: Callable[[Container], Vector], whole: Vector, *, infeasible: bool = False) -> Vector:
    """Return the sum over all containers, or pod-level resources (`whole`: actual ones), plus overhead and one pod."""
    result = _container_requests(spec, of)
    if spec.resources:
        wanted, has = _pod_level_requests(spec.resources, result), _of_pods(whole)
        result |= (has if infeasible else maximum(wanted, has)) if has else wanted
    if spec.overhead:
        result = add(result, vector(spec.overhead))
    result[PODS] = 1
    return result


def resource_names(spec: PodSpec) -> set[str]:
    """Return the names of all resources in the pod's requests and limits."""
    asked = [container.resources for container in (*spec.containers, *spec.init_containers)]
    asked += [spec.resources] if spec.resources else []
    return {name for each in asked for name in (*each.requests, *each.limits)} | set(spec.overhead or ())


def node_allocatable(node: Node) -> Vector:
    """Return the node's allocatable resources."""
    return vector(node.status.allocatable)


def _requests(resources: ResourceRequirements) -> Vector:
    """Return a container's requests; a limit replaces a missing request, as the API server's defaults do."""
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
    """Return CPU, memory and huge pages; a limit without a request counts if no container requests the resource."""
    limits = {
        name: amount
        for name, amount in vector(resources.limits).items()
        if name not in containers or name.startswith(_HUGE_PAGES)
    }
    wanted = {**limits, **vector(resources.requests)}
    return _of_pods(wanted)


def _of_pods(amounts: Vector) -> Vector:
    return {name: n for name, n in amounts.items() if name in {CPU, "memory"} or name.startswith(_HUGE_PAGES)}


_COMPUTE = (CPU, "memory", "ephemeral-storage")


class PodUsage(NamedTuple):
    """Total requests and limits of a number of pods; `requests` also contains this number."""

    requests: Vector
    limits: Vector

    def __add__(self, other: object) -> "PodUsage":
        if not isinstance(other, PodUsage):
            return NotImplemented
        return PodUsage(add(self.requests, other.requests), add(self.limits, other.limits))

    def times(self, count: int) -> "PodUsage":
        """Return the usage of `count` pods with this usage."""
        return PodUsage(scale(self.requests, count), scale(self.limits, count))


NOTHING = PodUsage({PODS: 0}, {})


def template_usage(template: Mapping[str, Any]) -> PodUsage:
    """Return the requests and limits of one pod of a template; raises ValueError that names an invalid quantity."""
    return pod_usage(convert(template.get("spec") or {}, PodSpec))


def pod_usage(spec: PodSpec) -> PodUsage:
    """Return the requests and limits of one pod."""
    limits = pod_requests(_limits_as_requests(spec))
    return PodUsage(pod_requests(spec), {name: amount for name, amount in limits.items() if name != PODS})


def _limits_as_requests(spec: PodSpec) -> PodSpec:
    """Return the pod spec with limits in place of requests, because limits are added up in the same way as requests.

    The pod's overhead is added only for resources for which at least one container has a limit.
    """
    limited = {name for container in (*spec.containers, *spec.init_containers) for name in container.resources.limits}
    return structs.replace(
        spec,
        containers=[_limited(container) for container in spec.containers],
        init_containers=[_limited(container) for container in spec.init_containers],
        resources=ResourceRequirements(requests=spec.resources.limits) if spec.resources else None,
        overhead={name: amount for name, amount in spec.overhead.items() if name in limited},
    )


def _limited(container: Container) -> Container:
    return structs.replace(container, resources=ResourceRequirements(requests=container.resources.limits))


def quota(usage: PodUsage) -> dict[str, str]:
    """Return the usage, keyed by the names in a ResourceQuota: `cpu`, `requests.cpu`, `limits.cpu`, `pods` etc."""
    requests = to_quantities(usage.requests)
    limits = to_quantities(usage.limits)
    pods = requests.pop(PODS)
    result = {**requests, **{f"requests.{name}": amount for name, amount in requests.items()}}
    result |= {f"limits.{name}": limits[name] for name in _COMPUTE if name in limits}
    return {**result, PODS: pods, f"count/{PODS}": pods}

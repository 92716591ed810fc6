"""The use of a quota by pods, under the keys of a PodGroup's minResources. Pure."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec import convert, structs

from muster.api.kubernetes.core import Container, PodSpec, ResourceRequirements
from muster.resources.pods import pod_requests
from muster.resources.vector import CPU, PODS, Vector, add, scale, to_quantities

_COMPUTE = (CPU, "memory", "ephemeral-storage")


class Usage(NamedTuple):
    """Requests and limits of some pods; `requests` also counts the pods."""

    requests: Vector
    limits: Vector

    def __add__(self, other: object) -> "Usage":
        if not isinstance(other, Usage):
            return NotImplemented
        return Usage(add(self.requests, other.requests), add(self.limits, other.limits))

    def times(self, count: int) -> "Usage":
        """The usage of `count` such pods."""
        return Usage(scale(self.requests, count), scale(self.limits, count))


NOTHING = Usage({PODS: 0}, {})


def template_usage(template: Mapping[str, Any]) -> Usage:
    """The usage of one pod of a template; ValueError names a quantity that is wrong."""
    return pod_usage(convert(template.get("spec") or {}, PodSpec))


def pod_usage(spec: PodSpec) -> Usage:
    """The usage of one pod."""
    limits = pod_requests(_limits_as_requests(spec))
    return Usage(pod_requests(spec), {name: amount for name, amount in limits.items() if name != PODS})


def _limits_as_requests(spec: PodSpec) -> PodSpec:
    """The pod with its limits as requests, as limits are summed by the same rules; overhead counts if it is limited."""
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


def quota(usage: Usage) -> dict[str, str]:
    """The usage under the names of a quota: plain, `requests.` and `limits.` names, `pods` and `count/pods`."""
    requests = to_quantities(usage.requests)
    limits = to_quantities(usage.limits)
    pods = requests.pop(PODS)
    result = {**requests, **{f"requests.{name}": amount for name, amount in requests.items()}}
    result |= {f"limits.{name}": limits[name] for name in _COMPUTE if name in limits}
    return {**result, PODS: pods, f"count/{PODS}": pods}

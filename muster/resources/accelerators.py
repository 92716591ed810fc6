"""Accelerators of one container: which of its requested resources are devices, and how many devices it requests. Pure.

Frameworks usually run one process per device. Resources are recognized by the names that device plugins register. A
resource that measures a property of a device (memory, cores) stands for a fraction of one device, not for a number of
devices.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from muster.api import names
from muster.api.kubernetes.core import Container, PodResourceClaim, PodSpec
from muster.api.kubernetes.devices import ALL, DeviceClaim, DeviceRequest
from muster.resources.gpus import share_of
from muster.resources.vector import Vector, unit

ACCELERATORS: Final = (
    "nvidia.com/mig-*", "amd.com/*px_nps*", "gpu.intel.com/i915", "gpu.intel.com/xe", "habana.ai/gaudi",
    "aws.amazon.com/neuron", "aws.amazon.com/neurondevice", "aws.amazon.com/neuroncore", "google.com/tpu",
    "huawei.com/Ascend*", "cambricon.com/mlu*", "hygon.com/dcu*",
)  # fmt: skip
"""Names of resources that count devices, in addition to all names with `gpu` after the slash. A `*` stands for the
model or profile of a device."""
_CLASSES: Final = ("gpu", "mig", "tpu", "neuron", "gaudi", "npu", "accelerator")
"""Parts of device class names that identify accelerators; other device classes are, for example, network devices."""
_AMOUNTS: Final = ("mem", "core", "percent", "priority")
"""Parts of resource names that show that the resource measures a property of a device."""

Claims = Callable[[PodResourceClaim], DeviceClaim | None]
"""Function that returns the requests of the claim in an entry of a pod's `resourceClaims`; None if they are unknown."""


def no_claims(_claim: PodResourceClaim) -> DeviceClaim | None:
    """Return None for any claim: a substitute for a function that reads claims, for callers that cannot read them."""
    return None


class Accelerators(NamedTuple):
    """The devices of one container."""

    number: int
    seen: bool
    """True if the container's program should count the devices: for whole GPUs, and for claims with unknown
    requests."""


def is_accelerator(resource: str, more: Sequence[str] = ()) -> bool:
    """Return True if a resource counts devices; `more` are names or patterns in addition to the known ones."""
    return _listed(resource, more) or _gpu(resource) == "device"


def accelerators(
    container: Container,
    requests: Vector,
    spec: PodSpec,
    annotations: Mapping[str, str],
    claims: Claims,
    more: Sequence[str] = (),
) -> Accelerators:
    """Return the devices of a container with these requests in a pod with this spec and these annotations."""
    asked = {name: -(-amount // unit(name)) for name, amount in requests.items() if amount > 0}
    counted = {name: amount for name, amount in asked.items() if is_accelerator(name, more)}
    count = sum(counted.values()) or _shared(container, spec, annotations)
    if not count and any(_gpu(name) == "amount" for name in asked):
        count = 1
    claimed = list(_claimed(container, spec, claims))
    if count or any(of_accelerator for of_accelerator, _ in claimed):
        claimed = [each for each in claimed if each[0]]
    unknown = any(number is None for _, number in claimed)
    whole = bool(counted) and not any(_listed(name, more) for name in counted)
    return Accelerators(count + sum(1 if n is None else n for _, n in claimed), whole or unknown)


def _listed(resource: str, more: Sequence[str]) -> bool:
    """Return True if the resource is in the table; a wildcard does not match resources that measure a device."""
    name = resource.lower()
    exact = any(name == each.lower() for each in (*ACCELERATORS, *more))
    return exact or (
        any(fnmatchcase(name, each.lower()) for each in (*ACCELERATORS, *more))
        and not any(part in name for part in _AMOUNTS)
    )


def _gpu(resource: str) -> str:
    """Return how a resource with `gpu` in its name counts (in devices, or as a quantity); "" for other resources."""
    _, _, name = resource.lower().rpartition("/")
    if "gpu" not in name:
        return ""
    return "amount" if any(part in name for part in _AMOUNTS) else "device"


def _shared(container: Container, spec: PodSpec, annotations: Mapping[str, str]) -> int:
    """Return the number of devices that this container shares by KAI-Scheduler's annotations."""
    named = annotations.get(names.GPU_CONTAINER, spec.containers[0].name if spec.containers else "")
    with suppress(ValueError):  # another check refuses the annotation
        share = share_of(annotations, {})
        return share.devices if share and container.name == named else 0
    return 0


def _claimed(container: Container, spec: PodSpec, claims: Claims) -> Iterator[tuple[bool, int | None]]:
    """Yield a pair for each claim request that the container uses: True for accelerators, and the number of devices.

    The number of devices is None if it is unknown.
    """
    entries = {each.name: each for each in spec.resource_claims}
    for used in container.resources.claims:
        found = claims(entries[used.name]) if used.name in entries else None
        if found is None:
            yield True, None
            continue
        wanted = used.request.partition("/")[0]
        yield from (_devices(each) for each in found.requests if wanted in {"", each.name})


def _devices(request: DeviceRequest) -> tuple[bool, int | None]:
    """Return if a claim request is for accelerators, and the number of devices; None if its alternatives differ."""
    exact = [request.exactly] if request.exactly else request.first_available
    counts = {0 if each.admin_access else None if each.allocation_mode == ALL else max(1, each.count) for each in exact}
    of_accelerators = any(part in each.device_class_name.lower() for each in exact for part in _CLASSES)
    return of_accelerators, counts.pop() if len(counts) == 1 else None

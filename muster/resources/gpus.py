"""Fractions of GPUs that pods request: KAI-Scheduler's annotations, and Volcano's resource for GPU memory. Pure.

KAI-Scheduler's annotations are `gpu-fraction` ("0.5") or `gpu-memory` (MiB, or with a unit), for one device or for each
of `gpu-fraction-num-devices` devices. Volcano's resources are `volcano.sh/gpu-memory` (MiB of one device) as a limit of
the containers, and `volcano.sh/gpu-number` (whole devices). Portions are counted in thousandths of a device.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from muster.api import names
from muster.api.fields import FieldError
from muster.api.kubernetes.core import Node, Pod, PodSpec
from muster.api.limits import GPU_DEVICES, GPU_MEMORY
from muster.api.muster.placement import devices_of_text
from muster.resources.pods import pod_requests, requests_on_node
from muster.resources.quantity import parse
from muster.resources.vector import GPU, WHOLE, Vector, add

ASKING = frozenset(names.GPU_SHARE_KEYS)
"""Annotations by which a pod requests a GPU fraction."""
_WHOLE = (GPU, names.VOLCANO_GPU_NUMBER)
_MEBI = 2**20
_FRACTION = re.compile(r"0?\.[0-9]{1,3}0*")
_COUNT = re.compile(r"[1-9][0-9]{0,17}")


@dataclass(frozen=True, slots=True)
class GpuShare:
    """A request for an equal share of each of one or more devices of a node, given as a portion or as memory."""

    portion: int = 0
    """Thousandths of each device, 1 to 999; 0 if the memory is given."""
    memory: int = 0
    """Memory of each device in MiB; 0 if the portion is given."""
    devices: int = 1
    """Number of different devices of the node."""
    by_resource: bool = False
    """True if the share is requested by Volcano's resource, which only nodes with Volcano's device plugin have."""

    def on(self, memory: int) -> int:
        """Return the share in thousandths of a device that has this memory (in MiB), rounded up.

        The result exceeds 1000 if the device is too small.
        """
        if self.portion:
            return self.portion
        return -(-self.memory * WHOLE // memory) if memory > 0 else WHOLE + 1


def share_of(annotations: Mapping[str, str], requests: Vector) -> GpuShare | None:
    """Return the GPU share that a pod requests, if any; raises a ValueError that names unreadable annotations.

    Until a pod is bound, users can change the pod's annotations, but not its requests. Therefore the annotations are
    ignored if the pod requests whole GPUs, and Volcano's resource takes precedence over them.
    """
    if any(requests.get(whole, 0) > 0 for whole in _WHOLE):
        return None
    memory = requests.get(names.VOLCANO_GPU_MEMORY, 0)
    if memory > 0:
        return GpuShare(memory=memory, by_resource=True)
    if names.GPU_FRACTION in annotations or names.GPU_SHARE_MEMORY in annotations:
        errors = list(_read_errors(annotations))
        if errors:
            raise ValueError("; ".join(str(error) for error in errors))
        devices = int(annotations.get(names.GPU_NUM_DEVICES, "1"))
        if names.GPU_FRACTION in annotations:
            return GpuShare(portion=_portion(annotations[names.GPU_FRACTION]), devices=devices)
        return GpuShare(memory=_memory(annotations[names.GPU_SHARE_MEMORY]), devices=devices)
    return None


def asking_for(share: GpuShare | None, annotations: Mapping[str, str]) -> dict[str, str] | None:
    """Return annotations that request exactly this GPU share; None if the current annotations already do so."""
    wanted: dict[str, str] = {}
    if share is not None and not share.by_resource:
        wanted = (
            {names.GPU_FRACTION: format_portion(share.portion)}
            if share.portion
            else {names.GPU_SHARE_MEMORY: str(share.memory)}
        )
        wanted |= {names.GPU_NUM_DEVICES: str(share.devices)} if share.devices > 1 else {}
    if not wanted and ASKING.isdisjoint(annotations):
        return None
    return {key: text for key, text in annotations.items() if key not in ASKING} | wanted


def share_errors(annotations: Mapping[str, str], spec: PodSpec, path: str, spec_path: str) -> Iterator[FieldError]:
    """Yield the errors of a pod or template that requests GPU fractions, with field paths of the user's object."""
    yield from _read_errors(annotations, path)
    asked = [name for name in (names.GPU_FRACTION, names.GPU_SHARE_MEMORY) if name in annotations]
    try:
        requests = pod_requests(spec)
    except ValueError:
        requests = {}  # another check refuses this value
    if asked:
        for whole in (GPU, names.VOLCANO_GPU_MEMORY, names.VOLCANO_GPU_NUMBER):
            if requests.get(whole, 0) > 0:
                message = f"must not be set together with {whole}: a pod has whole GPUs or GPU fractions, not both"
                yield FieldError(f"{path}[{asked[0]}]", message, annotations[asked[0]])
        name = annotations.get(names.GPU_CONTAINER)
        containers = [container.name for container in (*spec.containers, *spec.init_containers)]
        if name is not None and name not in containers:
            message = f"must name one of the pod's containers: {', '.join(containers)}"
            yield FieldError(f"{path}[{names.GPU_CONTAINER}]", message, name)
    if requests.get(names.VOLCANO_GPU_MEMORY, 0) > 0 and requests.get(names.VOLCANO_GPU_NUMBER, 0) > 0:
        both = f"{names.VOLCANO_GPU_MEMORY} and {names.VOLCANO_GPU_NUMBER}"
        message = f"must not request {both}: request a GPU fraction or whole GPUs"
        yield FieldError(f"{spec_path}.containers", message)
    yield from GPU_MEMORY.exceeded(f"{spec_path}.containers", requests.get(names.VOLCANO_GPU_MEMORY, 0))


def _read_errors(annotations: Mapping[str, str], path: str = "metadata.annotations") -> Iterator[FieldError]:
    fraction, memory = annotations.get(names.GPU_FRACTION), annotations.get(names.GPU_SHARE_MEMORY)
    if fraction is not None and (not _FRACTION.fullmatch(fraction) or not _portion(fraction)):
        message = 'must be more than 0 and less than 1, with at most three digits, as in "0.5"; request whole GPUs by '
        yield FieldError(f"{path}[{names.GPU_FRACTION}]", f"{message}limits of {GPU}", fraction)
    if memory is not None:
        try:
            amount = _memory(memory)
        except ValueError as error:
            yield FieldError(f"{path}[{names.GPU_SHARE_MEMORY}]", str(error), memory)
        else:
            yield from GPU_MEMORY.exceeded(f"{path}[{names.GPU_SHARE_MEMORY}]", amount)
    if fraction is not None and memory is not None:
        yield FieldError(
            f"{path}[{names.GPU_SHARE_MEMORY}]", f"must not be set together with {names.GPU_FRACTION}", memory
        )
    devices = annotations.get(names.GPU_NUM_DEVICES)
    if devices is None:
        return
    if fraction is None and memory is None:
        message = f"needs {names.GPU_FRACTION} or {names.GPU_SHARE_MEMORY}, which set the share of each device"
        yield FieldError(f"{path}[{names.GPU_NUM_DEVICES}]", message, devices)
    if not _COUNT.fullmatch(devices):
        yield FieldError(f"{path}[{names.GPU_NUM_DEVICES}]", "must be a whole number of at least 1", devices)
    else:
        yield from GPU_DEVICES.exceeded(f"{path}[{names.GPU_NUM_DEVICES}]", int(devices))


def _portion(text: str) -> int:
    return int((text.partition(".")[2] + "000")[:3])


def _memory(text: str) -> int:
    """Return the memory that a text describes, in MiB.

    A number without a unit is in MiB; a number with a unit is rounded up to MiB.
    """
    if _COUNT.fullmatch(text):
        return int(text)
    unit = bool(text) and text[-1].isalpha() and text[-1] not in "num"
    try:
        amount = -(-parse(text) // _MEBI) if unit else 0
    except ValueError:
        amount = 0
    if amount <= 0:
        raise ValueError('must be a whole number of MiB of at least 1, or have a unit, as in "2000" or "2Gi"')
    return amount


def counted(pod: Pod) -> Vector:
    """Return the resources that a bound pod uses in its queue, with the GPU fraction that was recorded at its binding.

    Only the recorded fraction counts, not the pod's current request, because the pod got the recorded fraction. Raises
    a ValueError that names an invalid quantity.
    """
    requests, annotations = requests_on_node(pod), pod.metadata.annotations
    devices = len(given_devices(annotations))
    if not devices or any(requests.get(own, 0) > 0 for own in (names.VOLCANO_GPU_MEMORY, *_WHOLE)):
        return requests
    text = annotations.get(names.GPU_PORTION, "")
    portion = WHOLE if text == "1" else _portion(text) if _FRACTION.fullmatch(text) else 0
    return add(requests, {GPU: portion * devices})


def device_memory(node: Node, amounts: Vector) -> int:
    """Return the memory of each GPU of a node in MiB, from Volcano's device plugin or a node label; 0 if unknown."""
    number = amounts.get(names.VOLCANO_GPU_NUMBER, 0)
    if number > 0:
        return amounts.get(names.VOLCANO_GPU_MEMORY, 0) // number
    text = node.metadata.labels.get(names.GPU_PER_DEVICE_MEMORY, "")
    return min(int(text), GPU_MEMORY.value) if _COUNT.fullmatch(text) else 0


def is_gpu(resource: str) -> bool:
    """Return True for a resource whose units are GPUs or MIG devices."""
    return resource in {GPU, names.VOLCANO_GPU_NUMBER} or resource.startswith(names.MIG_PREFIX)


def is_divided(node: Node, amounts: Vector) -> bool:
    """Return True for a node with MIG devices (of either NVIDIA strategy), because pods cannot share such devices."""
    divided = any(amount > 0 and name.startswith(names.MIG_PREFIX) for name, amount in amounts.items())
    return divided or "-MIG-" in node.metadata.labels.get(names.GPU_PRODUCT, "")


def format_portion(portion: int) -> str:
    """Return thousandths of a device as a text such as "0.5", as users write it."""
    return f"0.{portion:03}".rstrip("0") if portion < WHOLE else "1"


def given_devices(annotations: Mapping[str, str]) -> tuple[int, ...]:
    """Return the devices that Muster recorded when it bound a pod with a GPU fraction; empty for all other pods."""
    return devices_of_text(annotations.get(names.GPU_DEVICES_CHOSEN, ""))


def chosen_devices(annotations: Mapping[str, str]) -> tuple[int, ...]:
    """Return the indexes of the devices that a pod shares, from its annotations; empty without annotations."""
    text = annotations.get(names.GPU_DEVICES_CHOSEN) or annotations.get(names.VOLCANO_GPU_INDEX, "")
    return devices_of_text(text)

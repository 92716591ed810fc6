"""How many devices and CPUs a container asks for, and so how many processes it should run."""

from muster.resources.vector import CPU, MILLI, WHOLE, Vector

_NO_DEVICES = ("mem", "core", "percent", "priority")


def gpus(requests: Vector) -> int:
    """How many GPUs: the largest amount among the resources with `gpu` in their name that count devices.

    Shared devices have more than one such name (`…/gpu`, `…/gpumem`, `…/gpucores`); only the first is a count.
    """
    devices = [
        -(-amount // (WHOLE if name in MILLI else 1))
        for name, amount in requests.items()
        if "gpu" in name.lower() and not any(part in name.lower() for part in _NO_DEVICES)
    ]
    return max(devices, default=0)


def cpus(requests: Vector) -> int:
    """How many CPUs, rounded up, and at least one."""
    return max(1, -(-requests.get(CPU, 0) // WHOLE))

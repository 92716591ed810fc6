"""Warnings about a workload that exceeds its queue's capability, the capacity of all nodes, or the free capacity.

Pure.
"""

from collections.abc import Callable
from functools import reduce
from itertools import islice

import msgspec

from muster.api import limits
from muster.api.grammar import many
from muster.api.kubernetes.core import PodSpec
from muster.api.volcano.scheduling import Queue
from muster.resources.pods import pod_requests
from muster.resources.vector import PODS, Vector, add, amount_text, scale, subtract, vector
from muster.volcano.access import lineage
from muster.workloads.kind import WorkloadKind
from muster.workloads.sample import JSON, name_of


def requests_at(kind: WorkloadKind, size: int, of_size: Callable[[int], JSON]) -> Vector:
    """Return the requests of all pods of a workload with this size; a ValueError names an invalid field.

    The result is empty for a manifest that contains no pod templates, such as a TrainJob. The requests are extrapolated
    from workloads of the sizes 1 and 2.
    """
    one, two = (requests_of(kind, of_size(few)) for few in (1, 2))
    return add(one, scale(subtract(two, one), size - 1))


def requests_of(kind: WorkloadKind, workload: JSON) -> Vector:
    """Return the requests of all pods of a workload; raises ValueError if it has more pods than a gang may have."""
    named = {"apiVersion": kind.resource.api_version, "kind": kind.resource.kind, **workload}
    samples = kind.samples(named, every=True) if kind.samples else iter(())
    specs = [msgspec.convert(each.pod.get("spec") or {}, PodSpec) for each in islice(samples, limits.PODS.value + 1)]
    if len(specs) > limits.PODS.value:
        raise ValueError(f"{kind.resource.kind} {name_of(workload)} has more than {limits.PODS.value} pods")
    return reduce(add, map(pod_requests, specs), dict[str, int]())


def without_place(wanted: Vector, own: Vector, queue: str, get: Callable[[str], Queue | None]) -> str:
    """Return why pods with these requests cannot all run now, or ever, according to the Queues; "" if all can run.

    `own` are the requests of running pods that these pods replace. The root queue's fair share is the sum of all nodes.
    """
    above = list(lineage(queue, get))
    limits = [(vector(each.spec.capability), f"queue {each.metadata.name} may use {{}} (capability)") for each in above]
    if above and (nodes := vector(above[-1].status.fair_share)):
        free = subtract(nodes, subtract(vector(above[-1].status.allocated), own))
        limits += [(nodes, "all nodes together have {}"), (free, "only {} is free at present")]
    for limit, text in limits:
        for name in sorted(wanted.keys() & limit.keys(), key=lambda name: ("/" not in name, name)):
            most = max(0, limit[name])
            if wanted[name] > most:
                needs = f"{many(wanted[PODS], 'pod')} in all request {amount_text(name, wanted[name])} {name}"
                return f"{needs}, and {text.format(f'{amount_text(name, most)} {name}')}: not all of them can run"
    return ""

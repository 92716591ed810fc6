"""What the extender's caches weigh: recorded objects of a usual size, decoded from JSON as from a watch."""

import gc
import json
from collections.abc import Iterator

import msgspec

from extender.cluster import name_only
from extender.planner.state.state import PlannerState
from muster.api.kubernetes.core import Node, Pod
from muster.kube.store import ObjectStore
from tests.bench.usual import node, pod, resident_mib

NODES, PODS = 5_000, 50_000
BUDGET_MIB = 350


def run() -> Iterator[str]:
    """Resident memory before and after, in one process."""
    state, store = PlannerState(), ObjectStore[Pod]()
    for index in range(NODES):
        state.on_node(None, msgspec.convert(node(index), Node))
    decode = msgspec.json.Decoder(Pod).decode
    for index in range(PODS):
        one = decode(json.dumps(pod(index, NODES)).encode())
        state.on_pod(None, one)
        store.add_object(name_only(one))
    gc.collect()
    total = resident_mib()
    size = len(json.dumps(pod(0, NODES)))
    yield (
        f"{NODES} nodes and {len(state.pods)} pods of {size} bytes: {total:.0f} MiB in all, "
        f"budget {BUDGET_MIB} MiB, ratio {total / BUDGET_MIB:.2f}"
    )

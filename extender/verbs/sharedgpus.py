"""Which GPUs of its node a pod shares that is being bound, and what it is told about them."""

import time
from collections.abc import Callable
from functools import partial

from extender.live import Live
from extender.planner.framework.session import Session
from extender.planner.state.podclass import PodClass
from extender.planner.state.podrecord import PodRecord
from muster.api.muster.placement import text_of_devices
from muster.api.names import GPU_DEVICES_CHOSEN, GPU_PORTION, VOLCANO_GPU_INDEX, VOLCANO_PREDICATE_TIME
from muster.resources.gpus import format_portion


class SharedGpus:
    """Chooses devices for pods without a gang; those of members stand in their placements."""

    def __init__(self, cluster: Live, session: Callable[[], Session | None]) -> None:
        self._cluster = cluster
        self._session = session
        """The last planning cycle, whose plugins order devices."""
        self._on_their_way: dict[str, tuple[str, PodClass, tuple[int, ...]]] = {}
        """UID of a pod → its node, and what it shares there, while its binding is posted."""

    def choose(self, record: PodRecord, node: str) -> tuple[int, ...] | None:
        """The GPUs that the pod is to share, kept for it until `done`; None if there is no room."""
        table, share = self._cluster.state.nodes, record.cls.gpu
        column = table.index.get(node)
        if share is None or column is None or record.node:
            return record.devices
        devices, free = table.devices.at([column]), (table.allocatable - table.used)[:, [column]]
        for uid, (there, cls, taken) in self._on_their_way.items():
            if there == node and uid != record.uid and cls.gpu is not None:
                devices.take(cls.gpu, 0, taken)
                free[:, 0] -= table.row_of(table.taken(cls, column))
        unused, session = int(devices.unused(free, table.axis)[0]), self._session()
        order = None if session is None else partial(session.hooks.gpu_order.call, record.cls, column)
        chosen = devices.choose(share, 0, unused, order)
        if chosen is not None:
            self._on_their_way[record.uid] = node, record.cls, chosen
        return chosen

    def done(self, uid: str) -> None:
        """The pod's binding is through, or has failed."""
        self._on_their_way.pop(uid, None)

    def told(self, record: PodRecord, node: str, devices: tuple[int, ...]) -> dict[str, str]:
        """Annotations of the binding; Volcano's device plugin is told in its own words."""
        share = record.cls.gpu
        if share is None or not devices:
            return {}
        table = self._cluster.state.nodes
        column = table.index.get(node)
        portion = table.devices.portion(share, column) if column is not None else share.portion
        told = {GPU_DEVICES_CHOSEN: text_of_devices(devices), GPU_PORTION: format_portion(portion)}
        if share.by_resource:
            told |= {VOLCANO_GPU_INDEX: text_of_devices(devices), VOLCANO_PREDICATE_TIME: str(time.time_ns())}
        return told

"""Which GPUs of its node a pod shares that is being bound, and what it is told about them."""

import time
from collections.abc import Callable
from functools import partial

from extender.live import Live
from extender.planner.framework.session import Session
from extender.planner.state.podrecord import PodRecord
from muster.api.muster.placement import text_of_devices
from muster.api.names import GPU_DEVICES_CHOSEN, GPU_PORTION, VOLCANO_GPU_INDEX, VOLCANO_PREDICATE_TIME
from muster.resources.gpus import format_portion


class SharedGpus:
    """Chooses devices for pods without a gang; those of members stand in their placements.

    `session` is the last planning cycle, whose plugins order devices.
    """

    def __init__(self, cluster: Live, session: Callable[[], Session | None]) -> None:
        self._cluster = cluster
        self._session = session

    def choose(self, record: PodRecord, node: str) -> tuple[int, ...] | None:
        """The GPUs that the pod is to share; None if there is no room."""
        table, share = self._cluster.state.nodes, record.cls.gpu
        column, known = table.index.get(node), self._cluster.state.ledger.entries.get(record.uid)
        if share is None or column is None or record.node:
            return record.devices
        if known is not None and known.node == node:  # its binding is under way
            return known.devices
        unused, session = table.devices.unused_at(table.allocatable - table.used, table.axis, column), self._session()
        order = None if session is None else partial(session.hooks.gpu_order.call, record.cls, column)
        return table.devices.choose(share, column, unused, order)

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

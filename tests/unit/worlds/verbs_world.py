"""Filter and bind over a small cluster, as kube-scheduler calls them."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any, cast

from builders import pod
from extender_world import World

from extender.barrier import Barrier
from extender.cluster import LiveCluster
from extender.verbs.bind import Bind
from extender.verbs.filter import Filter
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.extender import ExtenderArgs, ExtenderBindingArgs

NODES = ["node-0", "node-1"]


class Filled(LiveCluster):
    """A cluster whose caches are filled by hand."""

    synced = True  # type: ignore[assignment]


class Extender:
    """Both verbs over a cluster: by default two nodes."""

    def __init__(self, world: World | None = None) -> None:
        self.world = world or World()
        if world is None:
            self.world.nodes(2)
        self.bound: dict[str, str] = {}
        cluster = Filled(cast("Any", None), wake=lambda _: None)
        cluster.state = self.world.state
        self.filter = Filter(cluster, active=lambda: True, wall_s=lambda: self.world.now)
        barrier = Barrier(timeout_s=1, monotonic_s=time.monotonic)
        self._bind = Bind(
            cluster,
            barrier,
            cast("Any", self),
            active=lambda: True,
            on_release=lambda *_: None,
            wall_s=lambda: self.world.now,
        )

    async def bind(self, namespace: str, name: str, uid: str, node: str, annotations: Mapping[str, str]) -> None:
        """Takes a binding as the API server would."""
        del namespace, uid, annotations
        self.bound[name] = node

    def pod(
        self,
        name: str,
        *,
        scheduler: str = "muster",
        cpu: int = 1,
        limits: Mapping[str, Any] | None = None,
        notes: dict[str, str] | None = None,
    ) -> Pod:
        """A pod without a gang."""
        requests, uid = {"cpu": cpu}, f"uid-{name}"
        made = pod(name, uid=uid, version="1", scheduler=scheduler, requests=requests, limits=limits, annotations=notes)
        self.world.state.on_pod(None, made)
        return made

    def passed(self, pod: Pod, *nodes: str) -> list[str]:
        """What filter answers."""
        return self.filter(ExtenderArgs(pod=pod, node_names=list(nodes))).node_names

    def error(self, pod: Pod, node: str) -> str:
        """What bind answers."""
        return asyncio.run(error_of(self._bind, pod, node))

    def done(self, pod: Pod, node: str) -> None:
        """Filter lets the pod pass to a node, and bind takes it there."""
        assert self.passed(pod, node) == [node]
        assert self.error(pod, node) == ""


async def error_of(bind: Bind, pod: Pod, node: str) -> str:
    """What bind answers to a call for this pod."""
    meta = pod.metadata
    args = ExtenderBindingArgs(pod_name=meta.name, pod_namespace=meta.namespace, pod_uid=meta.uid, node=node)
    return (await bind(args)).error

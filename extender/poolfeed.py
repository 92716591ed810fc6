"""Selection of a node pool's pods and Volcano Jobs, which the API server cannot select by a label.

The API server selects Nodes, PodGroups and Placements by the label of their pool. Pods cannot be selected by a label,
because pods on the pool's nodes may have any scheduler. Therefore all pods are watched, and pods of other pools are
dropped at once. A pod belongs to the pool if it names the pool's scheduler, or if it is on a node of the pool.

A node that leaves the pool is treated as deleted: gangs of the pool keep running on the node, and other pods are
dropped. If a node joins the pool, its pods have been dropped earlier. Therefore the node's pods are listed before the
planner receives the node, because the node would otherwise seem empty.
"""

import asyncio
from collections.abc import Callable

import structlog

from extender.planner.state.pooled import job_belongs, pod_belongs
from extender.planner.state.state import PlannerState
from muster.api.kubernetes.core import PODS, Node, Pod
from muster.api.volcano.batch import Job
from muster.kube.client import Client
from muster.kube.errors import APIError, Backoff
from muster.kube.store import Mirror

log = structlog.get_logger()
MOST_NAMES = 100_000
"""Maximum number of remembered names of nodes with dropped pods. Once this number is exceeded, the pods of every node
that joins the pool are read from the API server.
"""
_LIST_TIMEOUT_S = 30.0
_FIRST_DELAY_S, _LONGEST_DELAY_S = 0.2, 5.0
OnNodeChange = Callable[[Node | None, Node | None], None]


class PoolFeed:
    """Selector of the pods and Jobs to keep; it holds back a node until the pods on the node have been listed.

    The selector is used on the client's event loop.
    """

    def __init__(
        self, client: Client, state: PlannerState, on_change: OnNodeChange, random: Callable[[], float]
    ) -> None:
        self._client = client
        self._state = state
        self._on_change = on_change
        self._random = random
        self.pods: Mirror[Pod] | None = None
        """The cache of pods; set before the first event."""
        self._nodes: dict[str, Node] = {}
        """Current nodes of the pool, including those that are held back."""
        self._elsewhere: set[str] = set()
        """Names of the nodes on which pods were dropped."""
        self._forgotten = False
        """True if pods were dropped on more nodes than can be remembered."""
        self._coming: dict[str, asyncio.Task[None]] = {}
        self._gone: set[str] = set()
        """Keys of pods deleted while pods were being listed, which the list may still contain."""

    @property
    def held_back(self) -> int:
        """Number of nodes whose pods are being listed."""
        return len(self._coming)

    def wants_job(self, job: Job) -> bool:
        """Return True for a Volcano Job of the pool."""
        return job_belongs(job, self._state.pool)

    def wants_pod(self, pod: Pod) -> bool:
        """Return True for a pod of the pool; record the node of a dropped pod."""
        if pod_belongs(pod, self._state.pool, self._nodes, self._state.groups):
            return True
        if pod.spec.node_name:
            self._note(pod.spec.node_name)
        return False

    def on_node(self, old: Node | None, new: Node | None) -> None:
        """Process a node that entered, changed in, or left the pool."""
        name = (new or old or Node()).metadata.name
        if new is None:
            self._left(name)
            self._on_change(old, None)
            return
        came = name not in self._nodes
        self._nodes[name] = new
        if came and (self._forgotten or name in self._elsewhere):
            self._coming[name] = asyncio.get_running_loop().create_task(self._bring(name), name=f"pods-of-{name}")
        elif name not in self._coming:
            self._on_change(old, new)

    def stop(self) -> None:
        """Stop waiting for lists of pods."""
        for task in self._coming.values():
            task.cancel()

    def pod_gone(self, key: str) -> None:
        """Record that a pod was deleted; a list of pods in progress may still contain the pod."""
        if self._coming:
            self._gone.add(key)

    def _left(self, name: str) -> None:
        self._nodes.pop(name, None)
        task = self._coming.pop(name, None)
        if task is not None:
            task.cancel()
        for uid in self._state.ledger.holders_on(name):
            record = self._state.pods.get(str(uid))
            if record is not None and not record.ours and not record.gang and self.pods is not None:
                self._note(name)
                self.pods.remove(record.key)

    async def _bring(self, name: str) -> None:
        """List the pods of a node, then pass the node on; retry until success or until the node has left the pool."""
        backoff = Backoff(_FIRST_DELAY_S, _LONGEST_DELAY_S, self._random)
        while True:
            try:
                found = await self._client.on_loop.list(
                    PODS, field_selector=f"spec.nodeName={name}", timeout_s=_LIST_TIMEOUT_S
                )
                break
            except APIError as error:
                log.warning("a node of the pool waits until its pods can be listed", node=name, why=str(error))
                await asyncio.sleep(backoff.next())
        for pod in found:
            if (
                self.pods is not None
                and pod.metadata.key not in self._gone
                and pod.metadata.uid not in self._state.pods
            ):
                self.pods.add_object(pod)
        self._elsewhere.discard(name)
        del self._coming[name]
        if not self._coming:
            self._gone.clear()
        log.info("a node has joined the pool", node=name, pods=len(found))
        self._on_change(None, self._nodes[name])

    def _note(self, node: str) -> None:
        if len(self._elsewhere) >= MOST_NAMES:
            self._forgotten = True
            self._elsewhere.clear()
        if not self._forgotten:
            self._elsewhere.add(node)

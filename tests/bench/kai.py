"""The scale tests that KAI-Scheduler publishes, on Muster: so many seconds until all pods of a step have their nodes.

500 nodes of 8 GPUs, played by kwok; MUSTER_BENCH_NODES says how many, and all amounts follow. KAI's figures come from
other machines (its scheduler had 5 CPUs), so only their size is comparable. A full cluster belongs to queue `filler`,
which deserves nothing; whoever comes after it belongs to queue `claimer`, which deserves everything.
"""

import os
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from muster.api.kubernetes.core import PODS, Pod
from muster.api.names import JOB_NAME
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES
from muster.kube.client import Client
from muster.kube.reflector import Reflector
from muster.resources.vector import GPU
from musterctl.plane.install import BLOCK, RACK
from musterctl.plane.plane import Plane
from musterctl.plane.state import KWOK, PlaneOptions
from tests.bench.peers.muster import Muster
from tests.bench.peers.peer import JSON, NAMESPACE, each, until
from tests.bench.throughput import PARTS

NODES = int(os.environ.get("MUSTER_BENCH_NODES", "500"))
GPUS = 8
FILLER, CLAIMER = "filler", "claimer"
_SINGLES, _MEMBERS, _LATER = NODES * GPUS, 10, 6
"""One-GPU Jobs that fill the cluster; members and GPUs per member of the gangs for which others are moved."""
_FREED = 5
"""GPUs of each node that are freed before."""
_LONGEST_S = float(os.environ.get("MUSTER_BENCH_LONGEST", "900"))
_TIMES = 10


def planner(*levels: str) -> str:
    """Return the planner's configuration with a topology of these levels, the outermost first."""
    return f"""
tiers:
- plugins: [{{name: gang}}, {{name: priority}}, {{name: elastic}}, {{name: proportion}}]
- plugins: [{{name: predicates}}, {{name: minruntime}}, {{name: subgrouporder}}, {{name: taskorder}}]
- plugins: [{{name: topology, arguments: {{levels: [{", ".join(levels)}, kubernetes.io/hostname]}}}}]
"""


class Watch:
    """Pods with a node, by the prefix of their Job's name."""

    def __init__(self, client: Client) -> None:
        self._bound: dict[str, dict[str, tuple[str, str]]] = defaultdict(dict)
        """Prefix → name of a pod → its Job and its node."""
        self._changed = threading.Condition()
        self._reflector = Reflector(client, PODS, namespace=NAMESPACE)
        self._reflector.add_handler(self._seen)
        self._reflector.start()
        self._reflector.wait_synced(30)

    def wait(self, prefix: str, count: int, began_s: float) -> float:
        """Return the seconds until so many pods with this prefix have a node."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._bound[prefix]) >= count, _LONGEST_S):
                raise TimeoutError(f"{len(self._bound[prefix])} of {count} pods of {prefix} have a node")
            return time.monotonic() - began_s

    def by_node(self, prefix: str) -> dict[str, list[str]]:
        """Return the names of the Jobs on each node."""
        found = defaultdict[str, list[str]](list)
        with self._changed:
            for job, node in self._bound[prefix].values():
                found[node].append(job)
        return found

    def stop(self) -> None:
        """End the watch."""
        self._reflector.stop()

    def _seen(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        assert pod is not None
        job = pod.metadata.labels.get(JOB_NAME, "")
        with self._changed:
            bound = self._bound[job.partition("-")[0]]
            if new and new.spec.node_name and not new.metadata.deletion_timestamp:
                bound[pod.metadata.name] = job, new.spec.node_name
            else:
                bound.pop(pod.metadata.name, None)
            self._changed.notify_all()


class Scene:
    """The plane, and the steps that are measured on it."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._watch = Watch(client)
        for name, gpus in ((FILLER, 0), (CLAIMER, _SINGLES)):
            client.create(QUEUES, {"metadata": {"name": name}, "spec": {"deserved": {GPU: str(gpus)}}})

    def gang(self, prefix: str, members: int, gpus: int, queue: str = CLAIMER, **annotations: str) -> float:
        """Return the seconds from the submission of a gang to its last node."""
        began_s = time.monotonic()
        self._submit(_job(f"{prefix}-0", members, gpus, queue, annotations))
        return self._watch.wait(prefix, members, began_s)

    def singles(self, prefix: str, count: int, gpus: int = 1, queue: str = CLAIMER) -> float:
        """Return the seconds from the submission of the first Job of one pod to the last node."""
        began_s = time.monotonic()
        each(lambda number: self._submit(_job(f"{prefix}-{number}", 1, gpus, queue, {})), range(count))
        return self._watch.wait(prefix, count, began_s)

    def gangs(self, prefix: str, count: int) -> float:
        """Return the seconds from the submission of the first of several gangs to the last node."""
        began_s = time.monotonic()
        jobs = [_job(f"{prefix}-{number}", _MEMBERS, _LATER, CLAIMER, {}) for number in range(count)]
        each(self._submit, jobs)
        return self._watch.wait(prefix, count * _MEMBERS, began_s)

    def verdict(self) -> float:
        """Return the seconds until a gang that cannot be scheduled is told so: the queue lacks the last GPU for it."""
        deserved = {"deserved": {GPU: str(_SINGLES - _MEMBERS * GPUS + 1)}}
        self._client.merge_patch(QUEUES, FILLER, {"spec": deserved})
        began_s = time.monotonic()
        self._submit(_job("verdict-0", _MEMBERS, GPUS, CLAIMER, {}))

        def told() -> bool:
            groups = self._client.list(POD_GROUPS, NAMESPACE)
            return any(group.why_waiting for group in groups if group.metadata.name.startswith("verdict-0"))

        until(told, _LONGEST_S, "a reason")
        took_s = time.monotonic() - began_s
        self._client.delete(JOBS, "verdict-0", NAMESPACE, propagation="Background")
        for group in self._client.list(POD_GROUPS, NAMESPACE):  # no garbage collector runs here
            if group.metadata.name.startswith("verdict-0"):
                self._client.delete(POD_GROUPS, group.metadata.name, NAMESPACE)
        self._client.merge_patch(QUEUES, FILLER, {"spec": {"deserved": {GPU: "0"}}})
        return took_s

    def one_by_one(self) -> float:
        """Return the mean seconds until a Job of one GPU has taken it from the filler."""
        return sum(self.singles(f"one{number}", 1) for number in range(_TIMES)) / _TIMES

    def moved(self, prefix: str, count: int) -> float:
        """Remove some Jobs from each node, then return the seconds of gangs that need more than is free on any node."""
        doomed = {job for jobs in self._watch.by_node("fill").values() for job in jobs[:_FREED]}
        each(lambda job: self._client.delete(JOBS, job, NAMESPACE, propagation="Background"), doomed)
        pods = [pod for pod in self._client.list(PODS, NAMESPACE) if pod.metadata.labels.get(JOB_NAME) in doomed]
        each(lambda pod: self._client.delete(PODS, pod.metadata.name, NAMESPACE, grace_period_s=0), pods)
        return self.gangs(prefix, count)

    def clean(self) -> None:
        """Remove all that was submitted."""
        Muster().clean(self._client)

    def stop(self) -> None:
        """End the watch."""
        self._watch.stop()

    def _submit(self, job: JSON) -> None:
        self._client.create(JOBS, job, NAMESPACE)


def _job(name: str, members: int, gpus: int, queue: str, annotations: dict[str, str]) -> JSON:
    resources: dict[str, Any] = {"requests": {"cpu": "100m"}, "limits": {GPU: str(gpus)}}
    container = {"name": "main", "image": "none", "resources": resources}
    task = {"name": "worker", "replicas": members, "template": {"spec": {"containers": [container]}}}
    spec = {"schedulerName": "volcano", "queue": queue, "minAvailable": members, "tasks": [task]}
    return {"metadata": {"name": name, "annotations": annotations}, "spec": spec}


Step = tuple[str, float | None, str, Callable[[Scene], float]]
"""What is measured, the most seconds of the design, the figure that KAI publishes, and the measurement."""
_FILL: Step = (f"{_SINGLES:,} Jobs of one GPU", 100, "398 s (461 s with submission)", lambda scene: scene.singles(
    "fill", _SINGLES, queue=FILLER))  # fmt: skip
_RACK = {"muster.dev/topology-preferred": RACK}
STEPS: tuple[tuple[Step, ...], ...] = (
    ((f"a gang of {NODES + 12} pods", 5, "49.4 s", lambda scene: scene.gang("gang", NODES + 12, 2)),),
    (("the same with a preferred rack", 5, "48.7 s", lambda scene: scene.gang("rack", NODES + 12, 2, **_RACK)),),
    (
        _FILL,
        ("the reason of a gang that cannot be scheduled", 2, "", Scene.verdict),
        ("one GPU is reclaimed, mean of ten", 2, "", Scene.one_by_one),
        (f"{_SINGLES - _TIMES:,} Jobs of one GPU reclaim all", 120, "",
         lambda scene: scene.singles("all", _SINGLES - _TIMES)),
    ),
    (
        (f"{NODES} Jobs of a whole node", None, "",
         lambda scene: scene.singles("fill", NODES, gpus=GPUS, queue=FILLER)),
        (f"a gang of {NODES} pods reclaims all nodes", 10, "", lambda scene: scene.gang("large", NODES, GPUS)),
    ),
    (
        _FILL,
        (f"{NODES * _FREED // (_MEMBERS * _LATER)} gangs of {_MEMBERS} pods for which others are moved", 60, "",
         lambda scene: scene.moved("moved", NODES * _FREED // (_MEMBERS * _LATER))),
    ),
)  # fmt: skip
"""The steps; each group begins with an empty cluster."""


def run() -> Iterator[str]:
    """Yield a line per step."""
    options = PlaneOptions(
        nodes=NODES,
        gpus=GPUS,
        racks=max(1, NODES // 16),
        blocks=max(1, NODES // 128),
        planning_config=planner(BLOCK, RACK),
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        Plane(Path(folder) / "plane", (*PARTS, KWOK), options, bound=True) as plane,
        closing(plane.client()) as client,
    ):
        scene = Scene(client)
        try:
            for group in STEPS:
                for what, most_s, published, measure in group:
                    budget = "-" if most_s is None else f"≤ {most_s:.0f} s"
                    said = f", KAI publishes {published}" if published else ""
                    try:
                        yield f"{what:58} {measure(scene):8.2f} s {budget:>10}{said}"
                    except TimeoutError as error:
                        yield f"{what:58} NOT DONE in {_LONGEST_S:.0f} s: {error}"
                scene.clean()
        finally:
            scene.stop()

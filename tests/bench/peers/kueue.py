"""Kueue: batch Jobs that it admits as a whole; their pods go to a stock kube-scheduler, or to Muster."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

from beside import kueue, kueue_objects, programs
from beside.neighbour import Neighbours

from muster.api import names
from muster.api.base import Resource
from muster.api.muster.placement import PLACEMENTS
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.client import Client
from musterctl.plane.plane import Plane
from musterctl.plane.process import PlaneProcess
from musterctl.plane.state import CONTROLLER_MANAGER
from tests.bench.peers.kubernetes import BATCH_JOBS, JOB_CONTROLLER, submit_batch_jobs
from tests.bench.peers.muster import Muster
from tests.bench.peers.peer import JSON, NAMESPACE, Arguments, BarePlane, Peer, until
from tests.bench.throughput import PARTS

_QUEUE = "bench"
_PROGRAM = f"{kueue.MODULE}/cmd/kueue"
_LIFTED = {"clientConnection": {"qps": 5_000, "burst": 5_000}, "integrations": {"frameworks": ["batch/job"]}}
_CONTROLLERS = ("--controllers=job-controller", *JOB_CONTROLLER[1:])


class Kueue(Peer):
    """Kueue alone: it admits Jobs whole, and kube-scheduler places their pods one by one."""

    name = "kueue"
    title = "Kueue, pods one by one"
    parts: Collection[str] = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
    own: Collection[str] = ("kueue", "kube-controller-manager", "kube-scheduler")
    arguments: ClassVar[Arguments] = {CONTROLLER_MANAGER: _CONTROLLERS}
    made: Sequence[Resource[Any]] = (BATCH_JOBS, kueue_objects.WORKLOADS)
    labels: ClassVar[dict[str, str]] = {kueue_objects.QUEUE: _QUEUE}

    def about(self) -> str:
        """Return versions and flags, as a sentence for the page."""
        version = programs.version("kueue", kueue.MODULE)
        flags = " ".join(_CONTROLLERS)
        return f"{version}, batch Jobs only, `qps` 5000 and `burst` 5000; kube-controller-manager with `{flags}`"

    def build(self) -> None:
        """Build its manager."""
        programs.built("kueue", _PROGRAM, minutes=10)

    def start(self, plane: Plane) -> Mapping[str, PlaneProcess]:
        """Install and start Kueue, with quota for everything."""
        one = kueue.start(plane, Neighbours(), until, settings=_LIFTED)
        client = plane.client()
        if not client.list(kueue_objects.CLUSTER_QUEUES):
            kueue_objects.make_quota(client, _QUEUE, {"cpu": "1000000", "memory": "10Pi"})
            kueue_objects.make_local_queue(client, NAMESPACE, _QUEUE, _QUEUE)
        return {"kueue": one.part}

    def submit(self, client: Client, prefix: str, gangs: int, members: int) -> None:
        """Submit a batch Job per gang."""
        metadata: JSON = {"labels": self.labels, "annotations": self.annotations(members)}
        submit_batch_jobs(client, prefix, gangs, members, {"suspend": True}, metadata=metadata)

    def annotations(self, members: int) -> dict[str, str]:
        """Return the annotations of a Job."""
        del members
        return {}


class _WithJobs(BarePlane):
    """A plane with Muster, on which an argument that is given twice holds as the later one says."""

    _install = Plane._install


class KueueAndMuster(Kueue):
    """Kueue before Muster: it admits Jobs, and Muster places their pods as gangs."""

    name = "kueue-muster"
    title = "Kueue before Muster"
    plane_type = _WithJobs
    parts = (*PARTS, "kube-controller-manager")
    own = ("kueue", "kube-controller-manager", *Muster.own)
    made = (BATCH_JOBS, kueue_objects.WORKLOADS, POD_GROUPS, PLACEMENTS)
    labels: ClassVar[dict[str, str]] = {kueue_objects.QUEUE: _QUEUE, names.QUEUE: "default"}

    def about(self) -> str:
        """Return versions and flags, as a sentence for the page."""
        return f"as above, with Muster in place of the stock kube-scheduler ({super().about()})"

    def annotations(self, members: int) -> dict[str, str]:
        """Return the annotations of a Job: Muster starts its pods together."""
        return {names.MIN_MEMBER: str(members)}

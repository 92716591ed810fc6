"""Muster: Volcano Jobs that its webhook admits, its controller makes pods of, and its extender plans."""

from muster.api.muster.placement import PLACEMENTS
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.client import Client
from musterctl.plane.binaries import NEWEST
from musterctl.plane.plane import Plane
from tests.bench.peers.peer import NAMESPACE, Peer, each
from tests.bench.throughput import PARTS, manifest


class Muster(Peer):
    """Muster as installed: its default settings, its policies and its webhooks."""

    name = "muster"
    title = "Muster"
    plane_type = Plane
    parts = PARTS
    own = ("webhook", "extender", "muster-scheduler", "controller")
    made = (JOBS, POD_GROUPS, PLACEMENTS)

    def about(self) -> str:
        """Return versions and flags, as a sentence for the page."""
        return f"Volcano Jobs, with the default settings, webhooks and policies; kube-scheduler {NEWEST}"

    def submit(self, client: Client, prefix: str, gangs: int, members: int) -> None:
        """Submit a Volcano Job per gang."""
        submit_jobs(client, prefix, gangs, members)


def submit_jobs(client: Client, prefix: str, gangs: int, members: int) -> None:
    """Submit Volcano Jobs."""
    names = [f"{prefix}-{number}" for number in range(gangs)]
    each(lambda name: client.create(JOBS, manifest(name, members), NAMESPACE), names)

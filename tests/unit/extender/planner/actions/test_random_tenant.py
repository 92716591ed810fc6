"""A tenant who does whatever `edit` allows: others get what their queue deserves, and tables shrink again."""

from typing import Any

from extender_world import of, slots
from growth import grown, sizes
from hypothesis import given, settings
from hypothesis import strategies as st
from queue_world import shared_world

from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from muster.api import names
from muster.api.kubernetes.core import Pod
from muster.api.volcano.batch import Job

GPU = "nvidia.com/gpu"
ONE = {GPU: 1}
REQUESTS: tuple[dict[str, Any], ...] = (ONE, {GPU: 8}, {GPU: "100000000"}, {"cpu": 3}, {GPU: 1, "cpu": 32})
SIZES = (1, 2, 16, 40)
NOTES = {names.SPARES: "8", names.BORROWS: "true", names.EVICT_NOTICE: "8760h", names.PREEMPTABLE: "false"}
STEPS = ("create", "create", "run", "run", "note", "move", "end", "delete pod", "delete group", "delete", "time")
CHOICES = len(REQUESTS) * len(SIZES)


class Tenants:
    """A hostile tenant with two queues that may use half of the cluster, and another one who deserves the rest."""

    def __init__(self) -> None:
        self.world = shared_world(4)
        half = {GPU: "16", "cpu": "64", "memory": "512Gi", "pods": "200"}
        self.world.queue("theirs", capability=half)
        for name in ("one", "two"):
            self.world.queue(name, parent="theirs")
        self.world.queue("innocent", deserved={GPU: "16"})
        self.asks: dict[str, dict[str, Any]] = {}
        self.pods: dict[str, dict[int, Pod]] = {}
        self.jobs: dict[str, Job] = {}

    def does(self, what: str, number: int, choice: int) -> None:
        """Make a change of a gang of the hostile tenant, if there is such a gang; a cycle follows."""
        world, key = self.world, f"ns/bad-{number}"
        group, pods = world.state.groups.get(key), self.pods.get(key, {})
        if what == "create" and key not in self.asks:
            self.create(key, choice)
        elif what == "time":
            world.now += (1, 60, 4000)[choice % 3]
        elif what == "run" and key in world.state.placements:
            self.run(key)
        elif what == "note" and group is not None:
            name, text = [*NOTES.items()][choice % len(NOTES)]
            world.change(group, annotations={**group.metadata.annotations, name: text})
        elif what == "move" and group is not None and not pods:
            world.change(group, spec={"queue": ("one", "two")[choice % 2]})
        elif what == "end" and pods:
            world.pod(key, "worker", min(pods), self.asks[key], node=pods[min(pods)].spec.node_name, phase="Failed")
        elif what == "delete pod" and pods:
            world.state.on_pod(pods.pop(min(pods)), None)
        elif what == "delete group" and group is not None:
            self.forget(key)
        elif what == "delete":
            self.delete(key)
        self.plan()

    def create(self, key: str, choice: int) -> None:
        """Submit a gang of some shape."""
        self.asks[key] = requests = REQUESTS[choice % len(REQUESTS)]
        size = SIZES[choice // len(REQUESTS)]
        minimum, name = (size, max(1, size // 2))[choice % 2], key.partition("/")[2]
        least = {"worker": minimum}
        self.world.gang(name, {"worker": (size, requests)}, min_member=minimum, min_task_member=least, queue="one")
        self.jobs[key] = self.world.job_of(key)

    def run(self, key: str) -> None:
        """Let the members run where they were placed."""
        placement = self.world.state.placements[key]
        for rank, node in enumerate(slots(placement).get("worker", ())):
            if node and rank not in self.pods.setdefault(key, {}):
                epoch = placement.spec.epoch
                pod = self.world.pod(key, "worker", rank, self.asks[key], node=node, epoch=epoch, phase="Running")
                self.pods[key][rank] = pod

    def forget(self, key: str) -> None:
        """Delete the PodGroup, and its placement with it."""
        state = self.world.state
        if (placement := state.placements.get(key)) is not None:
            self.world.notify(placement, None)
        self.world.notify(state.groups[key], None)

    def delete(self, key: str) -> None:
        """Delete all of a gang."""
        for pod in self.pods.pop(key, {}).values():
            self.world.notify(pod, None)
        if key in self.world.state.groups:
            self.forget(key)
        if (job := self.jobs.pop(key, None)) is not None:
            self.world.notify(job, None)
        self.asks.pop(key, None)

    def plan(self) -> Session:
        """One cycle, after which ended placements are closed."""
        session = self.world.plan()
        self.world.close(session)
        return session

    def innocent(self) -> int:
        """Submit a gang of what the other tenant deserves; return how many of its members get a node at once."""
        world = self.world
        key = world.pod_group("good", 16, queue="innocent", namespace="other")
        pods = [world.pod(key, "pods", rank, ONE, gated=True, namespace="other") for rank in range(16)]
        session = self.plan()
        found = sum(place.new_slots for place in of(session, decisions.Place) if place.gang.key == key)
        for pod in pods:
            world.notify(pod, None)
        self.forget(key)
        return found


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 3), st.integers(0, CHOICES - 1)), min_size=8, max_size=30)
)
def test_others_get_at_once_what_their_queue_deserves(steps: list[tuple[str, int, int]]) -> None:
    """Whatever a tenant creates, runs, marks, moves, ends and deletes; and what is deleted leaves nothing behind."""
    tenants = Tenants()
    assert tenants.innocent() == 16
    before = sizes(tenants.world.state)
    for step in steps:
        tenants.does(*step)
    assert tenants.innocent() == 16
    for key in [*tenants.asks]:
        tenants.delete(key)
    tenants.plan()
    assert grown(before, sizes(tenants.world.state), 0) == {}
    assert not tenants.world.state.ledger.queues.queues
    assert not tenants.world.state.jobs

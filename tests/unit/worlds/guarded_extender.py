"""The writers of the extender over a small world, and an API server in memory that has the same objects."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from extender_world import World, cluster_of
from guarded_api import GuardedApi

import extender
from extender.barrier import Barrier
from extender.commit import Committer
from extender.planner.framework.session import Session
from muster.api.kubernetes.core import PODS
from muster.api.kubernetes.scheduling import NATIVE_POD_GROUPS
from muster.api.muster.placement import PLACEMENTS
from muster.api.muster.placementnotes import is_noted
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES
from muster.api.volcano.topology import HYPER_NODES


class Process:
    """The writers of the extender over a world, an API server that has the same objects, and a recorder of Events."""

    api_type = GuardedApi

    def __init__(self, world: World) -> None:
        self.world = world
        self.api = self.api_type(extender)
        self.events: list[str] = []
        self.set_back_s = 0.0
        """Seconds by which the clock of the machine was set back."""
        state = world.state
        self.api.keep(POD_GROUPS, *state.groups.values())
        self.api.keep(NATIVE_POD_GROUPS, *state.native.groups.values())
        self.api.keep(PLACEMENTS, *(each for each in state.placements.values() if not is_noted(each)))
        self.api.keep(PODS, *state.pod_objects.values())
        self.api.keep(QUEUES, *state.queues.values())
        self.api.keep(HYPER_NODES, *state.hyper_nodes.values())
        barrier = Barrier(timeout_s=1, monotonic_s=lambda: 0.0)
        self.committer = Committer(
            cast("Any", self.api), cluster_of(world), barrier, cast("Any", self),
            active=lambda: True, wall_s=lambda: self.world.now, monotonic_s=lambda: self.world.now + self.set_back_s,
        )  # fmt: skip

    def event(self, obj: Any, _kind: str, reason: str, message: str) -> None:
        """As the recorder."""
        self.events.append(f"{obj.metadata.name} {reason}: {message}")

    def done(self, *verbs: str) -> list[str]:
        """The names of the objects of writes of these verbs that were carried out."""
        sent = (one for one in self.api.sent if not one.refused and one.site.rpartition(" ")[2] in verbs)
        return sorted(one.key.partition("/")[2] for one in sent)

    def carry_out(self, session: Session, *more: Any) -> None:
        """Writes what a cycle has decided, and more decisions; waits for the answers."""
        session.decisions += more
        self.committer.writes.snapshot_taken()
        self.committer.carry_out(session)
        assert self.committer.writes.settled(10)

    def stop(self) -> None:
        """Ends the threads."""
        self.committer.stop()


@contextmanager
def process_of(world: World) -> Iterator[Process]:
    """A process whose threads end."""
    process = Process(world)
    try:
        yield process
    finally:
        process.stop()

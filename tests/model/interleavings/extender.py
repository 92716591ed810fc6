"""The extender as a process: its real planner, committer, barrier and verbs, wired as `extender.main` does.

The parts without a decision are replaced: reflectors (the world tells of changes), threads (`Pool`), the Recorder of
Events, and the Lease, which this replica holds.
"""

from collections.abc import Sequence
from math import inf
from typing import Any, NamedTuple

from extender.barrier import Barrier
from extender.cluster import Live, name_only
from extender.commit import Committer
from extender.configfile import ConfigFile
from extender.cycles import Planner
from extender.groupstatus import PodGroupStatusWriter
from extender.planner.actions.allocate import Allocate
from extender.planner.actions.elsewhere import Elsewhere
from extender.planner.actions.enqueue import Enqueue
from extender.planner.actions.evicting import Evicting
from extender.planner.actions.progress import TrackPlacements
from extender.planner.actions.progress import _half_since as half_since
from extender.planner.actions.repair import Repair
from extender.planner.scaleup.action import AskForNodes
from extender.planner.state.feed import FEED
from extender.planner.state.gangs import GangView
from extender.planner.state.state import PlannerState
from extender.verbs.bind import Bind, Binder
from extender.verbs.filter import Filter
from interleavings.api import Event, kind_of
from interleavings.digest import Version
from interleavings.process import Calls, Pool, Process
from muster.api.kubernetes.core import PODS
from muster.api.kubernetes.extender import ExtenderArgs, ExtenderBindingArgs
from muster.api.volcano.scheduling import PodGroupStatus

SINCE = {
    "TrackPlacements": "_half_since", "Allocate": "_placed_since", "Repair": "_since", "StaleGangEviction": "_since"
}  # fmt: skip
"""What actions note: since when something is so, in seconds since the epoch. `rest` says what of it matters."""
WITHOUT = {
    *SINCE.items(),
    ("Planner", "session"),
    ("Planner", "_replaced"),
    ("Planner", "pages"),
    ("Planning", "plugins"),
    ("Planning", "_hyper_nodes"),
    ("Planning", "_asks"),  # made of views when planning asks first
    ("Planner", "_thread"),
    ("Planner", "_queue_metrics"),
    ("GangEvents", "_last"),
    ("GangEvents", "_sent"),
    ("", "_shared"),
    ("", "_version"),
    ("NodeTable", "_order"),
    ("Reserved", "_start_s"),
    ("ReservedRooms", "_start_s"),
    ("Parts", "_assembly"),
    ("Bind._bind_member", "session"),
    ("ExtenderProcess", "_tell"),
    ("Writes", "_calls"),  # only what `settled` waits for
    ("Writes", "_again"),  # only whether the planner looks at once, which it may do at any moment
    ("Session", "hooks"),
    ("Session", "plugins"),
    ("Snapshot", "_rows"),
    ("Planner.cycle", "started"),
    ("Planner.cycle", "arrived"),  # at the barrier, which only planning looks at: it makes no call
    ("CycleInputs", "arrived"),
    ("CycleInputs", "asks"),
}
"""Attributes that decide nothing: what is shown or said to people, and what follows from the rest or is over."""


class Silent:
    """In place of the Recorder: Events of the API are for people."""

    def event(self, *_: Any) -> None:
        """SetCondition nothing."""


class Binding(NamedTuple):
    """A call of kube-scheduler's bind verb."""

    namespace: str
    pod: str
    uid: str
    node: str


MEMOS: dict[type, tuple[str, ...]] = {
    Enqueue: ("_hopeless", "_version", "_updated"),
    Allocate: ("_failures", "_searched", "_rotation"),
    Evicting: ("running", "lowest", "_ending", "_attempts", "_rules", "_keys"),
    Elsewhere: ("_seen",),
    Repair: ("_checks",),
}
"""What actions remember from one cycle to the next to save searches whose answer would be the same."""


def forget(action: Any) -> None:
    """Drop the memos of an action."""
    fresh = type(action)()
    for kind, attributes in MEMOS.items():
        if isinstance(action, kind):
            for name in attributes:
                setattr(action, name, getattr(fresh, name))


class Phases(PodGroupStatusWriter):
    """Writes of a status what others decide by: its phase, and no words or counts."""

    def _due_s(self, gang: GangView, status: PodGroupStatus, now: float) -> float:
        return inf if status.phase == gang.group.status.phase else super()._due_s(gang, status, now)

    def _write(self, gang: GangView, status: PodGroupStatus, *why: Any) -> None:
        super()._write(gang, PodGroupStatus(phase=status.phase), *why)


class ExtenderProcess(Process):
    """One life of the extender. It says `("bound", call, error)` for each bind call, in any later step.

    A `forgetful` one begins each cycle without memos of searches, and writes no words into statuses of PodGroups and
    pods, so that it has fewer states; that these change nothing is left to the worlds in which it remembers.
    """

    def __init__(self, now_s: float, *, forgetful: bool = False, steady: bool = False) -> None:
        super().__init__()
        self._steady = steady
        """Whether time passes only after a cycle that changes nothing."""
        self._noted: dict[tuple[str, str], float] = {}
        self._forgetful = forgetful
        self.at(now_s)
        client: Any = Calls(self)
        self._known: dict[tuple[str, str], Any] = {}
        state = PlannerState()
        state.ledger.nodes.version = Version()
        self.cluster = Live(state, wake=self._wake)
        clock = lambda: self.now_s  # noqa: E731 - the only one
        self.barrier = Barrier(timeout_s=10.0, monotonic_s=clock)
        silent: Any = Silent()
        self.committer = Committer(client, self.cluster, self.barrier, silent, active=lambda: True, wall_s=clock)
        self.committer.writes._pools = {lane: Pool(self, lane) for lane in self.committer.writes._pools}  # type: ignore[misc]
        self.planner = Planner(
            self.cluster,
            self.committer,
            ConfigFile(None).current,
            active=lambda: True,
            arrived=self.barrier.arrived,
            wall_s=clock,
            monotonic_s=clock,
        )
        self.filter_verb = Filter(self.cluster, active=lambda: True, wall_s=clock)
        self.bind_verb = Bind(
            self.cluster,
            self.barrier,
            Binder(client.on_loop),
            active=lambda: True,
            on_release=self.committer.mark_binding,
            session=lambda: self.planner.session,
            wall_s=clock,
        )
        self._silence()
        if forgetful:
            self.committer._statuses.__class__ = Phases
            self.committer.scaling.report = lambda _: None  # type: ignore[method-assign]
        self._tell = {kind_of(fed.resource): fed.apply for fed in FEED}

    def _wake(self, _: str | None) -> None:
        """Nothing: the planner may look at any moment."""

    def watch(self, events: Sequence[Event]) -> None:
        """Take in what the watches tell."""
        for event in events:
            kind = kind_of(event.resource)
            if kind not in self._tell:
                continue
            meta = event.stored.meta
            key = (kind, f"{meta.get('namespace', '')}/{meta['name']}")
            old = self._known.get(key)
            new = None if event.gone else event.stored.as_(event.resource.type)
            if new is None:
                self._known.pop(key, None)
            else:
                self._known[key] = name_only(new) if event.resource is PODS else new
            self.cluster.change(lambda state, kind=kind, old=old, new=new: self._tell[kind](state, old, new))  # type: ignore[misc]

    def _silence(self) -> None:
        """Let it say nothing about queues and autoscalers, which nobody decides by."""
        committer: Any = self.committer
        committer.scaling._listed_at = never = float("inf")
        committer.scaling.served = False
        for writer in (committer._queues, committer._positions):
            writer._next = never

    def rest(self) -> None:
        """Make states equal that only differ in what was asked, or said to people, before.

        Views of gangs are worked out when they are asked for; a status is written late, and not twice.
        """
        self.cluster.state.refresh()
        self._note()
        self._forget_searches()
        if "cycle" not in self.running:
            self._forget_words()

    def _note(self) -> None:
        """Tell states apart by what actions have noted, but for what the next cycle would note alike.

        Where a cycle runs before time passes, that is what has begun at this moment.
        """
        gangs = {gang.uid: gang for gang in self.cluster.state.gangs()}
        self._noted = {
            (kind, key): since
            for action in self.planner._planning.actions
            if (kind := type(action).__name__) in SINCE
            for key, since in getattr(action, SINCE[kind]).items()
            if not (self._steady and self._would_note(kind, gangs.get(key), since))
        }

    def _would_note(self, kind: str, gang: GangView | None, since: float) -> bool:
        if kind != "TrackPlacements":
            return since == self.now_s
        # one that is gone never comes back, and others may be half since an earlier moment than this
        return gang is None or since == self.now_s == half_since(gang, self.now_s)

    def _forget_words(self) -> None:
        statuses: Any = self.committer._statuses
        statuses._known.clear()
        writes = self.committer.writes
        # a cycle begins with none of these; only what the bind verb writes is begun between two cycles
        writes._answered = {name for name in writes._answered if name.startswith("binding/")}

    def _forget_searches(self) -> None:
        for action in self.planner._planning.actions:
            if isinstance(action, TrackPlacements):
                action._checks.clear()
            if isinstance(action, AskForNodes):
                for bucket in (action._conditions._asks, action._conditions._sentences, action._evictions._bucket):
                    bucket.fill(self.now_s)
                if self._forgetful:
                    action._evictions._settled = {}
                    action._conditions._written = {}
            if self._forgetful:
                forget(action)

    @property
    def may_cycle(self) -> bool:
        """Whether the planner rests: it may begin a cycle at any moment, as it does each second."""
        return "cycle" not in self.running

    def cycle(self) -> None:
        """Begin a planning cycle, as the planner's thread does."""
        self.planner._woken.clear()
        if self.planner._ready():
            self.thread("cycle", self.planner.cycle)

    def filter(self, pod: Any, nodes: list[str]) -> list[str] | str:
        """Answer the filter verb: nodes, or an error."""
        result = self.filter_verb(ExtenderArgs(pod=pod, node_names=nodes))
        return result.error or result.node_names or []

    def bind(self, call: tuple[str, int], binding: Binding) -> None:
        """Take a call of the bind verb."""
        args = ExtenderBindingArgs(
            pod_name=binding.pod, pod_namespace=binding.namespace, pod_uid=binding.uid, node=binding.node
        )
        self.task(call, self.bind_verb(args), lambda result: self.said.append(("bound", call, result.error)))

"""One planning cycle, as run by the planner, by reports about a dump of a cluster, and by replays.

The module does no I/O: a cycle reads its inputs and returns decisions, which `extender.cycles` carries out.
"""

from collections.abc import Sequence
from functools import cache
from math import inf
from typing import Any

from extender.planner import reasons
from extender.planner.actions import ACTIONS
from extender.planner.actions.displace import Recall, SparesForPreempt, SparesForReclaim
from extender.planner.actions.elsewhere import Elsewhere, WithdrawNotices
from extender.planner.actions.progress import TrackPlacements
from extender.planner.ask import Asks
from extender.planner.configuration.build import Assembly, examine
from extender.planner.configuration.resolve import ConfigurationReport
from extender.planner.framework import config
from extender.planner.framework.answers import Causes
from extender.planner.framework.decisions import Unschedulable
from extender.planner.framework.inputs import CycleInputs
from extender.planner.framework.nodelabels import LabelCache
from extender.planner.framework.registry import Action, PlannerPlugin, Registry
from extender.planner.framework.session import Session
from extender.planner.framework.snapshot import Snapshot
from extender.planner.memory import Refusals, avoided_after, still_avoided
from extender.planner.plugins import PLUGINS
from extender.planner.scaleup.action import AskForNodes
from extender.planner.timing import CLOCKS_S, Timing
from extender.planner.topology.hypernodes import HyperNodeTree


class Parts:
    """Actions and plugins of successive configurations; an action or plugin with unchanged settings keeps its memory.

    In each configuration, placements are tracked first, so that no gang stays partly placed. Right after `allocate`,
    gangs that have lost members take back their lent spare slots. Next, waiting gangs get other gangs' spare slots, if
    spare slots alone are enough. After the configured actions, gangs that wait for notified victims may get free
    capacity instead, and the victims' notices are withdrawn. Last, additional nodes are requested from autoscalers for
    the gangs that still wait.
    """

    def __init__(self) -> None:
        self._first, self._recall = TrackPlacements(), Recall()
        self._spares: tuple[Action, ...] = (SparesForReclaim(), SparesForPreempt())
        self._last = (Elsewhere(), WithdrawNotices(), AskForNodes())
        self._assembly = Assembly(registry())

    def parts_of(self, configuration: config.SchedulerConfig) -> tuple[list[Action], list[PlannerPlugin]]:
        """Return the actions and plugins of a configuration. Raises ValueError that lists all its errors."""
        actions, plugins = self._assembly.build(configuration)
        place = next((number for number, action in enumerate(actions, 1) if action.name == "allocate"), len(actions))
        named = {action.name for action in actions}
        spares = [action for action in self._spares if action.name in named]
        return [self._first, *actions[:place], self._recall, *spares, *actions[place:], *self._last], plugins


def parts_of(configuration: config.SchedulerConfig) -> tuple[list[Action], list[PlannerPlugin]]:
    """Return new actions and plugins of a configuration. Raises ValueError that lists all its errors."""
    return Parts().parts_of(configuration)


def report_of(text: str) -> ConfigurationReport:
    """Report errors in a configuration's text, and names that have another meaning or no effect in Muster."""
    return examine(text, registry())


@cache
def registry() -> Registry:
    """Return all actions and plugins, built in or from the packages that are installed at the first call."""
    return Registry(PLUGINS, ACTIONS)


def run_cycle(inputs: CycleInputs, actions: Sequence[Action], plugins: Sequence[PlannerPlugin]) -> Session:
    """Run one cycle and return its session: plugins register hooks, then actions add decisions one after another."""
    session = Session(inputs)
    session.actions, session.plugins = frozenset(action.name for action in actions), tuple(plugins)
    for plugin in plugins:
        plugin.on_session_open(session)
    for action in actions:
        action.execute(session)
    _report_barred(session)
    for gang in session.snapshot.excluded:  # no action has decided about these gangs
        session.decide(Unschedulable(gang, reasons.exclusions.EXCLUDED, reasons.exclusions.excluded(why=gang.excluded)))
    for plugin in plugins:
        plugin.on_session_close(session)
    return session


RENEWED_S = 60.0
"""Minimum seconds between resets of the cause codes when all are in use; a reset drops all cached answers."""


class Planning:
    """Successive cycles of one planner, and the memory that is kept from cycle to cycle."""

    def __init__(self, configuration: config.SchedulerConfig, timing: Timing) -> None:
        """Create a planner with empty memory. Raises ValueError, which lists all errors of the configuration."""
        self._parts = Parts()
        self._timing = timing
        self._causes, self._renewed = Causes(), -inf
        self._hyper_nodes = HyperNodeTree()
        self._asks = Asks()
        self._labels = LabelCache()
        self._avoided: Refusals = {}
        self._latest = -inf
        self.configure(configuration)

    def configure(self, configuration: config.SchedulerConfig) -> None:
        """Use this configuration from the next cycle on. Raises ValueError that lists all its errors."""
        self.actions, self.plugins = self._parts.parts_of(configuration)
        self._configuration = configuration

    def run(self, snapshot: Snapshot, now: float, actions: Sequence[Action] | None = None, **given: Any) -> Session:
        """Run one cycle.

        `given` contains further inputs, named as in `CycleInputs`; `actions` replaces the configured actions.

        Nodes that refused a member are remembered for the next cycle. The Placement also records these nodes, but
        writing the Placement may fail. The remembered nodes are used unless `avoided` is given.

        If the clock has been set back by hours, the planner begins with empty memory, as after a restart.
        """
        if now < self._latest - CLOCKS_S:
            self._parts, self._avoided = Parts(), {}
            self.configure(self._configuration)
        self._latest = now
        if self._causes.full and not 0 <= now - self._renewed < RENEWED_S:
            self._causes, self._renewed = Causes(), now
        inputs = CycleInputs(
            snapshot=snapshot,
            now=now,
            causes=self._causes,
            hyper_nodes=self._hyper_nodes,
            asks=self._asks,
            labels=self._labels,
            timing=self._timing,
            **{"avoided": still_avoided(self._avoided, now), **given},
        )
        session = run_cycle(inputs, self.actions if actions is None else actions, self.plugins)
        self._avoided = avoided_after(session)
        return session


def _report_barred(session: Session) -> None:
    """Report gangs whose queue excludes their namespace or is in another pool, unless the namespace is terminating."""
    for key, barrier in session.snapshot.barred.items():
        gang = session.gang(key)
        if barrier is not None and gang is not None and gang.group.status.phase != "Completed":
            namespace = gang.group.metadata.namespace
            words = reasons.queues.not_for_namespace(namespace=namespace, queue=gang.queue, why=str(barrier))
            reason = reasons.queues.NOT_FOR_NAMESPACE
            if barrier.pools:
                reason, words = reasons.queues.OF_OTHER_POOL, reasons.queues.of_other_pool(why=str(barrier))
            session.decide(Unschedulable(gang, reason, words))

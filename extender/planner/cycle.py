"""One planning cycle: what it consists of and how it runs, for the planner, `muster explain` and `muster simulate`.

Pure: a cycle reads its inputs and leaves decisions. It promises that nobody runs a cycle in another way, so that what
is explained and simulated is what the planner does. `extender.cycles` runs it for good and carries the decisions out.
"""

from collections.abc import Sequence

from extender.planner import reasons
from extender.planner.actions import ACTIONS
from extender.planner.actions.progress import TrackPlacements
from extender.planner.configuration.build import Assembly, examine
from extender.planner.configuration.resolve import Report
from extender.planner.framework import config
from extender.planner.framework.decisions import Unschedulable
from extender.planner.framework.registry import Action, Plugin, Registry
from extender.planner.framework.session import Session
from extender.planner.framework.snapshot import CycleInputs
from extender.planner.plugins import PLUGINS
from extender.planner.scaleup.action import AskForNodes


class Parts:
    """The actions and plugins of one configuration after the other; what did not change is kept, with what it knows.

    What placements need comes first, whatever the configuration says: nothing may stay half placed. Asking for nodes
    comes last: it looks at who is left waiting.
    """

    def __init__(self) -> None:
        self._first, self._last = TrackPlacements(), AskForNodes()
        self._assembly = Assembly(registry())

    def of(self, configuration: config.SchedulerConfig) -> tuple[list[Action], list[Plugin]]:
        """The actions and plugins of a configuration. Raises ValueError with all that is wrong at once."""
        actions, plugins = self._assembly.build(configuration)
        return [self._first, *actions, self._last], plugins


def parts_of(configuration: config.SchedulerConfig) -> tuple[list[Action], list[Plugin]]:
    """New actions and plugins of a configuration. Raises ValueError with all that is wrong at once."""
    return Parts().of(configuration)


def report_of(text: str) -> Report:
    """What is different, has no effect, or is wrong in the text of a configuration."""
    return examine(text, registry())


def registry() -> Registry:
    """Every action and plugin there is: the built-in ones and those of installed packages."""
    return Registry(PLUGINS, ACTIONS)


def run_cycle(inputs: CycleInputs, actions: Sequence[Action], plugins: Sequence[Plugin]) -> Session:
    """Runs one cycle, and returns its session with the decisions."""
    # 1. Open a session over the inputs.
    session = Session(inputs)
    # 2. Let the plugins look at it and register what they want to be asked.
    for plugin in plugins:
        plugin.on_session_open(session)
    # 3. Let the actions decide, each upon what those before it have left.
    for action in actions:
        action.execute(session)
    # 4. Tell the owners of gangs that are set aside why; no action has decided anything for them.
    for gang in session.snapshot.set_aside:
        session.decide(Unschedulable(gang, reasons.aside.SET_ASIDE, gang.set_aside))
    # 5. Let the plugins keep what they need for the next cycle.
    for plugin in plugins:
        plugin.on_session_close(session)
    return session

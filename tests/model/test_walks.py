"""Random walks through worlds that are too large to be visited in full: three gangs, two Jobs, several faults.

Hypothesis chooses the steps, and makes a walk that fails as short as it can; what fails is told as a story, with the
seed that repeats it (`pytest tests/model/test_walks.py -m model --hypothesis-seed=N`). After its steps a walk goes on
without faults, each step in its turn, until nothing happens any more: that is where everybody must have ended.
"""

import random
import sys
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, event, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from interleavings import properties
from interleavings.explorer import Check
from interleavings.extender import ExtenderProcess
from interleavings.job_properties import ended, safe
from interleavings.jobs import JobRules, JobScene
from interleavings.world import Faults, Rules, Scene, Step, World

pytestmark = [pytest.mark.model, pytest.mark.timeout(3600), pytest.mark.usefixtures("no_logs")]
MOST_STEPS = 1_000
"""Steps after which a world without faults must have come to rest."""
Ended = Callable[[World], str | None]


def _gangs() -> tuple[Rules, Check, Ended]:
    scene = Scene(nodes=3, gangs={"a": 2, "b": 2, "c": 1}, waits=8)
    rules = Rules(scene, partial(ExtenderProcess, forgetful=True))
    return rules, properties.safe, lambda world: properties.done(world, scene.gangs)


def _jobs() -> tuple[Rules, Check, Ended]:
    scene = JobScene(nodes=3, gangs={}, jobs={"a": 2, "b": 2}, waits=16)
    rules = JobRules(scene, partial(ExtenderProcess, forgetful=True))
    return rules, safe(rules), lambda world: ended(world, scene, failures=FAULTS["jobs"].pod - world.faults.pod)


SCENES = {"gangs": cache(_gangs), "jobs": cache(_jobs)}
FAULTS = {
    "gangs": Faults(crash=1, scheduler_crash=1, lost=1, stale=1, node=0, refuse=1, delete=1),
    "jobs": Faults(crash=1, lost=1, refuse=1, controller_crash=1, controller_lost=1, pod=1),
}


class Walk(RuleBasedStateMachine):
    """One walk; subclasses say through which worlds."""

    scene = ""

    @initialize()
    def begin(self) -> None:
        """Nothing has happened yet."""
        self.rules, self.check, self.ended = SCENES[self.scene]()
        self.world = self.rules.first(FAULTS[self.scene])
        self.story: list[str] = []

    @rule(number=st.integers(0, 40))
    def step(self, number: int) -> None:
        """One of the things that can happen."""
        steps = self.rules.steps(self.world)
        if steps:
            chosen = steps[number % len(steps)]
            event(chosen.kind)
            self._go(chosen)

    def teardown(self) -> None:
        """Everything goes on without faults, until nothing happens any more."""
        turns: dict[str, int] = {}
        for turn in range(MOST_STEPS):
            steps = [each for each in self.rules.steps(self.world) if each.kind != "fault"]
            steps.sort(key=lambda each: turns.get(each.words, -1))
            for chosen in steps:
                if chosen.go().key != self.world.key:
                    turns[chosen.words] = turn
                    self._go(chosen)
                    break
            else:
                self._must_hold(self.ended(self.world))
                return
        self._must_hold("the world does not come to rest")

    def _go(self, chosen: Step) -> None:
        before, self.world = self.world, chosen.go()
        self.story.append(chosen.words)
        self._must_hold(self.check(before, chosen, self.world))
        if chosen.kind == "time":
            self._must_hold(properties.at_rest(before))

    def _must_hold(self, why: str | None) -> None:
        if why:
            steps = "".join(f"\n  {number}. {words}" for number, words in enumerate(self.story, 1))
            raise AssertionError(f"{why}, after {len(self.story)} steps:{steps}")


class GangWalk(Walk):
    """Three gangs, and six faults."""

    scene = "gangs"


class JobWalk(Walk):
    """Two Jobs, and six faults."""

    scene = "jobs"


def walk(machine: type[Walk], request: pytest.FixtureRequest, *, walks: int, steps: int) -> None:
    """Go so many walks, and print their seed."""
    given = request.config.getoption("--hypothesis-seed", default=None)
    number = int(given) if given not in {None, "random"} else random.SystemRandom().randrange(2**32)
    sys.stderr.write(f"\n{machine.__name__}: {walks} walks, --hypothesis-seed={number}\n")
    checks = settings(
        max_examples=walks,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )
    seeded: Any = seed(number)(type(machine.__name__, (machine,), {}))
    run_state_machine_as_test(seeded, settings=checks)
    rules = SCENES[machine.scene]()[0]
    sys.stderr.write(f"{rules.extender}\n")


@pytest.mark.parametrize("machine", [GangWalk, JobWalk])
def test_walks(machine: type[Walk], request: pytest.FixtureRequest) -> None:
    """Some, in each run another few."""
    walk(machine, request, walks=15, steps=40)


@pytest.mark.storm
@pytest.mark.parametrize("machine", [GangWalk, JobWalk])
def test_many_walks(machine: type[Walk], request: pytest.FixtureRequest) -> None:
    """For `make storm`."""
    walk(machine, request, walks=500, steps=80)

"""A storm of Jobs under a controller that is killed again and again: all end right, none doubled, none lost."""

import random
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
from controller_storms import rage
from gang_jobs import attempt
from jobs import Story, job, policy, task

from muster.api import names
from muster.api.kubernetes.core import PODS
from muster.api.volcano.batch import JOBS
from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.long]


class Storm:
    """Jobs of several kinds, and how each of them must end."""

    def __init__(self, story: Story, chance: random.Random) -> None:
        self.story = story
        self.chance = chance
        self.wanted: dict[str, tuple[str, int, int]] = {}  # name → phase, restarts, pods that must have run to the end

    def submit(self, number: int) -> None:
        """One more Job."""
        name, pods = f"s{number}", self.chance.randint(1, 8)
        run_s = round(self.chance.uniform(0.3, 2.0), 1)
        kind = self.chance.choice(["plain", "plain", "fails", "restarts", "aborts"])
        if kind == "plain":
            manifest, self.wanted[name] = self._job(name, pods, run_s), ("Completed", 0, pods)
        elif kind == "fails":
            manifest, self.wanted[name] = self._job(name, pods, run_s, exit_code=1), ("Failed", 0, 0)
        elif kind == "restarts":
            manifest = self._job(
                name, pods, run_s, exit_code=1, policies=[policy("RestartJob", "PodFailed")], maxRetry=2
            )
            self.wanted[name] = ("Failed", 2, 0)
        else:
            manifest = self._job(name, pods, run_s, exit_code=3, policies=[policy("AbortJob", exitCode=3)])
            self.wanted[name] = ("Aborted", 0, 0)
        attempt(lambda: self.story.create(manifest))

    def _job(self, name: str, pods: int, run_s: float, exit_code: int = 0, **spec: Any) -> dict[str, Any]:
        return job(name, self.story.namespace, task("w", pods, run_s=run_s, exit_code=exit_code, cpu="10m"), **spec)

    def disturb(self) -> None:
        """Nothing but time."""
        time.sleep(self.chance.uniform(0.0, 0.1))

    def unfinished(self) -> dict[str, str]:
        """Jobs that are not where they must be, or still have pods that go."""
        jobs = {one.metadata.name: one.status for one in self.story.client.list(JOBS, self.story.namespace)}
        found = {}
        for name, (phase, _, _) in self.wanted.items():
            status = jobs.get(name)
            if status is None or status.state.phase != phase or status.terminating:
                found[name] = f"{status.state.phase}, {status.terminating} terminating" if status else "lost"
        return found

    def check(self) -> None:
        """None doubled, none lost, nothing restarted too often, and the counters are right."""
        pods = self.story.client.list(PODS, self.story.namespace)
        for name, (phase, restarts, succeeded) in self.wanted.items():
            status = self.story.job(name).status
            own = [pod for pod in pods if pod.metadata.annotations.get(names.JOB_NAME) == name]
            assert status.retry_count == restarts, f"{name} ({phase}): {status}"
            assert status.succeeded == succeeded == sum(pod.status.phase == "Succeeded" for pod in own), (
                f"{name}: {status}"
            )
            assert status.pending == status.running == status.terminating == 0, f"{name}: {status}"
            own_pods = {pod: uids for pod, uids in self.story.ran.items() if pod.startswith(f"{name}-w-")}
            doubled = {pod: uids for pod, uids in own_pods.items() if len(uids) > restarts + 1}
            assert not doubled, f"{name} ({phase}): {doubled}"


def run_storm(plane: Plane, namespace: str, *, jobs: int, kills: int, seed: int) -> None:
    """All that a storm of Jobs is, from its seed to what must hold."""
    sys.stderr.write(f"\ncontroller storm seed {seed}\n")
    chance = random.Random(seed)  # noqa: S311 - the order of events is no secret
    with Story(plane.client(), namespace) as story:
        storm = Storm(story, chance)
        rage(storm, plane, chance, jobs=jobs, kills=kills)
        storm.check()


def test_a_short_storm(plane: Plane, namespace: str, seed: int) -> None:
    """Ten Jobs, four kills of the controller."""
    try:
        run_storm(plane, namespace, jobs=10, kills=4, seed=seed)
    finally:
        plane.mend()


@pytest.mark.storm
@pytest.mark.timeout(1800)
def test_a_long_storm(fresh_plane: Callable[..., Plane], seed: int) -> None:
    """Fifty Jobs, twenty-five kills, a plane of its own."""
    run_storm(fresh_plane(), "default", jobs=50, kills=25, seed=seed)

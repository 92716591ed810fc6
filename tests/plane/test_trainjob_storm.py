"""A storm of TrainJobs under a controller that is killed again and again, suspended and resumed by chance."""

import random
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from controller_storms import rage
from gang_jobs import attempt
from jobs import Story
from train_jobs import TrainStory, runtime, train_job

from muster.api import names
from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.kubeflow.trainingruntime import TRAINING_RUNTIMES
from muster.api.kubernetes.core import PODS
from muster.api.volcano.batch import JOBS
from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.long]

ENDS = {"plain": "AllJobsCompleted", "fails": "FailedJobs", "restarts": "ReachedMaxRestarts"}


class Storm:
    """TrainJobs of several kinds, how each of them must end, and what was done to it."""

    def __init__(self, story: TrainStory, chance: random.Random) -> None:
        self.story = story
        self.chance = chance
        self.kinds: dict[str, str] = {}
        self.suspensions: Counter[str] = Counter()
        self.versions: dict[str, str] = {}  # "<UID>/<resourceVersion>" of a runtime → its image
        self._edits = 0

    def submit(self, number: int) -> None:
        """One more TrainJob, on a runtime that may be edited or deleted as soon as it is admitted."""
        name, kind = f"t{number}", self.chance.choice(["plain", "plain", *ENDS])
        base = self.chance.choice(["r0", "r1", f"own{number}"])
        self.edit(base)
        run_s = round(self.chance.uniform(0.5, 3.0), 1)
        manifest = train_job(
            name, base, nodes=self.chance.randint(1, 4), run_s=run_s, exit_code=0 if kind == "plain" else 1,
            kind="TrainingRuntime", suspend=self.chance.random() < 0.2,
            trainer={"resourcesPerNode": {"requests": {"cpu": "10m"}}},
        )  # fmt: skip
        if kind == "restarts":  # the runtimes of the storm restart once where the TrainJob asks for it
            manifest["spec"]["runtimeRef"]["name"] = f"{base}-again"
            self.edit(f"{base}-again")
        attempt(lambda: self.story.create(manifest), refused=True)
        self.kinds[name] = kind
        self.suspensions[name] += manifest["spec"]["suspend"]
        if self.chance.random() < 0.5:
            base = manifest["spec"]["runtimeRef"]["name"]
            attempt(lambda: self.story.client.delete(TRAINING_RUNTIMES, base, self.story.namespace))
        else:
            self.edit(manifest["spec"]["runtimeRef"]["name"])

    def edit(self, name: str) -> None:
        """Another image."""
        self._edits += 1
        image = f"image:{self._edits}"
        policy = {"failurePolicy": {"maxRestarts": 1}} if name.endswith("-again") else {}

        def apply() -> None:
            made = self.story.client.apply(
                TRAINING_RUNTIMES, runtime(name, image=image, **policy), namespace=self.story.namespace
            )
            self.versions[f"{made.metadata.uid}/{made.metadata.resource_version}"] = image

        attempt(apply, refused=True)

    def disturb(self) -> None:
        """Suspends or resumes one of them, sometimes with another patch."""
        if not self.kinds:
            return
        name = self.chance.choice([*self.kinds])
        suspend = self.chance.random() < 0.5
        self.suspensions[name] += suspend
        attempt(lambda: self.story.change(name, suspend=suspend), refused=True)

    def unfinished(self) -> dict[str, Any]:
        """TrainJobs that have not ended as they must, and those whose pods still go."""
        found: dict[str, Any] = {}
        for each in self.story.client.list(TRAIN_JOBS, self.story.namespace):
            name = each.metadata.name
            ends = [one.reason for one in each.status.conditions if one.type in {"Complete", "Failed"}]
            if ends != [ENDS[self.kinds[name]]]:
                found[name] = (self.kinds[name], each.spec.suspend, self.story.held(name))
                if each.spec.suspend:
                    attempt(partial(self.story.change, name, suspend=False), refused=True)
        return found

    def check(self, jobs: Story) -> None:
        """The right runtime, no pod more often than it has to be, and an end that stays."""
        client, namespace = self.story.client, self.story.namespace
        by_name = {each.metadata.name: each for each in client.list(TRAIN_JOBS, namespace)}
        owners = Counter(job.metadata.name for job in client.list(JOBS, namespace))
        assert all(count == 1 for count in owners.values())
        pods = client.list(PODS, namespace)
        for name, kind in self.kinds.items():
            wanted = self.versions[by_name[name].metadata.annotations[names.RUNTIME_VERSION]]
            images = {pod.spec.containers[0].image for pod in pods if pod.metadata.name.startswith(f"{name}-node-")}
            assert images <= {wanted}, f"{name}: {images}, admitted with {wanted}"
            most = 1 + (kind == "restarts") + self.suspensions[name]
            doubled = {
                pod: uids for pod, uids in jobs.ran.items() if pod.startswith(f"{name}-node-") and len(uids) > most
            }
            assert not doubled, f"{name} ({kind}), suspended {self.suspensions[name]} times: {doubled}"
            ends = [[one for one in held if one[0] in {"Complete", "Failed"}] for held in self.story.all_held(name)]
            first = next(index for index, held in enumerate(ends) if held)
            assert all(held == ends[first] for held in ends[first:]), f"{name}: {ends}"


def run_storm(plane: Plane, namespace: str, *, jobs: int, kills: int, seed: int) -> None:
    """All that a storm of TrainJobs is, from its seed to what must hold."""
    sys.stderr.write(f"\ntrain job storm seed {seed}\n")
    chance = random.Random(seed)  # noqa: S311 - the order of events is no secret
    with Story(plane.client(), namespace) as pods, TrainStory(plane.client(), namespace) as story:
        storm = Storm(story, chance)
        rage(storm, plane, chance, jobs=jobs, kills=kills)
        storm.check(pods)


def test_a_short_storm(plane: Plane, namespace: str, seed: int) -> None:
    """Eight TrainJobs, four kills of the controller."""
    try:
        run_storm(plane, namespace, jobs=8, kills=4, seed=seed)
    finally:
        plane.mend()


@pytest.mark.storm
@pytest.mark.timeout(1800)
def test_a_long_storm(fresh_plane: Callable[..., Plane], seed: int) -> None:
    """Fifty TrainJobs, twenty-five kills, a plane of its own."""
    run_storm(fresh_plane(), "default", jobs=50, kills=25, seed=seed)

"""Jobs with `spec.scheduling` in random rounds, a part killed in each: every gang starts whole and ends well."""

import random
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from gang_jobs import RECOVERY_S, History, attempt
from making import SERVES_NATIVE_GROUPS
from native_gates import ARGUMENTS
from native_groups import Scene, scheduled_job

from muster.api.kubernetes.core import INDEXED_JOBS, NAMESPACES, PODS
from musterctl.plane.plane import Plane
from musterctl.plane.state import CONTROLLER, CONTROLLER_MANAGER, EXTENDER, MUSTER_SCHEDULER, SCHEDULER, WEBHOOK

pytestmark = [
    pytest.mark.plane,
    pytest.mark.long,
    pytest.mark.skipif(not SERVES_NATIVE_GROUPS, reason="this Kubernetes has no scheduling.k8s.io/v1beta1"),
]
WaitFor = Callable[..., Any]
PARTS = (EXTENDER, CONTROLLER, WEBHOOK, MUSTER_SCHEDULER, CONTROLLER_MANAGER, SCHEDULER)
SIZES = (2, 3, 5, 8, 13, 21)
GANGS = 10
"""Gangs of one round, which together ask for more than there is."""
HALF_S = 15.0
"""The longest that a gang may be partly bound."""


@pytest.fixture
def scene(fresh_plane: Callable[..., Plane], wait_for: WaitFor) -> Scene:
    """A namespace on a plane of its own."""
    plane, name = fresh_plane(arguments=ARGUMENTS), f"test-{uuid.uuid4().hex[:8]}"
    client = plane.client()
    client.create(NAMESPACES, {"metadata": {"name": name}})
    return Scene(plane, client, name, wait_for)


def a_job(chance: random.Random, name: str) -> tuple[dict[str, Any], int]:
    """A Job of one GPU for each pod, and its minimum; some are gangs of a part of their pods."""
    size = chance.choice(SIZES)
    least = chance.choice((size, size, max(1, size // 2)))
    gang = {"minCount": least} if least < size or chance.random() < 0.5 else {}
    run_s = round(chance.uniform(0.5, 3.0), 1)
    return scheduled_job(name, size, {"schedulingPolicy": {"gang": gang}}, gpus=1, run_s=run_s), least


def one_round(scene: Scene, chance: random.Random, number: int) -> None:
    """Submits the gangs, kills a part among them, and sees all of them through."""
    minimums: dict[str, int] = {}
    with History(scene.client, scene.namespace) as history:
        victim, moment = chance.choice(PARTS), chance.randrange(GANGS)
        for index in range(GANGS):
            name = f"r{number:03d}-{index}"
            manifest, minimums[name] = a_job(chance, name)
            attempt(lambda manifest=manifest: scene.client.create(INDEXED_JOBS, manifest, scene.namespace))
            if index == moment:
                scene.plane.part(victim).kill()
                scene.plane.mend()

        def left() -> list[str]:
            jobs = scene.client.list(INDEXED_JOBS, scene.namespace)
            ended = {
                each["type"] for job in jobs for each in job.status.get("conditions", ()) if each["status"] == "True"
            }
            assert "Failed" not in ended
            return [job.metadata.name for job in jobs if not job.status.get("completionTime")]

        what = f"round {number}, in which {victim} was killed"
        scene.wait_for(lambda: not left(), 2 * RECOVERY_S, f"all Jobs of {what}, to complete")
        for name, least in minimums.items():
            lives = history.of(f"native.{name}-")
            assert sum(life.bound is not None for life in lives) >= least, f"{name} had another gang in {what}"
            half_s = history.half_placed_s(f"native.{name}-", least)
            assert half_s < HALF_S, f"{name} was partly bound for {half_s:.1f} s in {what}"
    assert scene.no_mirror()
    for name in minimums:
        scene.client.delete(INDEXED_JOBS, name, scene.namespace, propagation="Background")
    scene.wait_for(lambda: not scene.client.list(PODS, scene.namespace), 60, "the pods to be gone")


def test_thirty_gangs_in_random_rounds(scene: Scene, seed: int) -> None:
    """A kill for every ten."""
    chance = random.Random(seed)  # noqa: S311 - drawn again by its seed
    for number in range(3):
        one_round(scene, chance, number)


@pytest.mark.storm
@pytest.mark.timeout(7200)
def test_a_thousand_gangs_in_random_rounds(scene: Scene, seed: int) -> None:
    """A kill for every ten."""
    chance = random.Random(seed)  # noqa: S311 - drawn again by its seed
    for number in range(100):
        one_round(scene, chance, number)

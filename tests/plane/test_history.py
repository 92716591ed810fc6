"""The history of a plane: what is told of gangs, and that it is exact while processes are killed at random moments.

The seed is printed; MUSTER_SEED repeats a run.
"""

import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from typing import Any

import held_by_audit
import pytest
from gangs import attempt, job

from history import read
from history.model import What
from history.scope import EVERYTHING
from history.store import Store
from history.usage import SEEN, usage
from muster.api.kubernetes.core import PRIORITY_CLASSES
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import QUEUES
from muster.kube.client import Client
from musterctl.plane.plane import Plane
from musterctl.plane.state import ALL, CONTROLLER, EXTENDER, HISTORY, history_of

pytestmark = pytest.mark.plane
NAMESPACE = "default"
QUEUES_OF_TEST = ("research", "product")
STORM_S = 75.0
EXACT = 0.001
"""The part by which held seconds may differ from the audit log's."""
GPU = "nvidia.com/gpu"


def prepare(client: Client) -> None:
    """Two queues, and two priorities."""
    for name in QUEUES_OF_TEST:
        client.create(QUEUES, {"metadata": {"name": name}, "spec": {"weight": 1}})
    for name, value in {"low": 1, "high": 1000}.items():
        body = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
        client.apply(PRIORITY_CLASSES, body | {"value": value})


def manifest(name: str, queue: str, replicas: int, **more: Any) -> dict[str, Any]:
    """A gang that starts again when it is evicted or a member fails."""
    priority, exit_code = more.pop("priority", "low"), more.pop("exit_code", 0)
    made = job(name, NAMESPACE, replicas=replicas, cpu="100m", **more)
    if exit_code:
        annotations = made["spec"]["tasks"][0]["template"]["metadata"]["annotations"]
        annotations["kwok.muster.dev/exit-code"] = str(exit_code)
    made["spec"] |= {
        "queue": queue,
        "priorityClassName": priority,
        "maxRetry": 2,
        "policies": [{"events": ["PodEvicted", "PodFailed"], "action": "RestartJob"}],
    }
    return made


def storm(plane: Plane, client: Client, chance: random.Random) -> int:
    """Gangs come, run, fail and are evicted, and processes are killed meanwhile; return the number of gangs."""
    for queue in QUEUES_OF_TEST:
        for number in range(2):
            client.create(JOBS, manifest(f"base-{queue}-{number}", queue, 2, gpus=4), NAMESPACE)
    number = kills = 0
    ends = time.monotonic() + STORM_S
    next_kill = time.monotonic() + 5.0
    while time.monotonic() < ends:
        size = chance.choice([1, 2, 4])
        how = {"gpus": chance.choice([4, 8]), "run_s": round(chance.uniform(3.0, 12.0), 1)}
        if chance.random() < 0.2:
            how["exit_code"] = 1
        how["priority"] = chance.choice(["low", "low", "high"])
        one = manifest(f"g{number}", chance.choice(QUEUES_OF_TEST), size, **how)
        attempt(lambda one=one: client.create(JOBS, one, NAMESPACE), refused=True)
        number += 1
        time.sleep(chance.uniform(0.5, 2.5))
        if time.monotonic() > next_kill:
            part = chance.choice([HISTORY, HISTORY, EXTENDER, CONTROLLER])
            plane.part(part).kill()
            plane.part(part).start()
            kills += 1
            next_kill = time.monotonic() + chance.uniform(3.0, 8.0)
    sys.stderr.write(f"{number} gangs, {kills} kills\n")
    return number


def done(client: Client) -> bool:
    """Whether all gangs but those that run for ever have ended."""
    jobs = [each for each in client.list(JOBS, NAMESPACE) if not each.metadata.name.startswith("base-")]
    return all(each.status.state.phase in {"Completed", "Failed"} for each in jobs)


def survives(plane: Plane, url: str, wait_for: Callable[..., Any]) -> None:
    """The storm, and what must hold of the history afterwards."""
    seed = int(os.environ.get("MUSTER_SEED") or random.randrange(10**6))  # noqa: S311 - no secret
    sys.stderr.write(f"\nhistory seed {seed}\n")
    client = plane.client()
    prepare(client)
    storm(plane, client, random.Random(seed))  # noqa: S311 - no secret
    wait_for(lambda: done(client), 180, "all gangs to end")
    until = time.time()
    with closing(Store.for_reading(url)) as store:
        wait_for(lambda: int(store.note(SEEN) or 0) > (until + 1) * 1000, 60, "the recorder to have looked")
        audited = held_by_audit.seconds(plane, until)
        jobs = {each.metadata.name: each for each in client.list(JOBS, NAMESPACE)}
        truth = Counter[str]()
        for name, held in audited.items():
            truth[jobs[name].spec.queue] += held
        told = {
            row.key[0]: row.resources[GPU].held for row in usage(store, EVERYTHING, ("queue",), since=0, until=until)
        }
        sys.stderr.write(f"held {told}\naudit {dict(truth)}\n")
        by_job = usage(store, EVERYTHING, ("workload",), since=0, until=until)
        of_job = {row.key[0].rpartition("/")[2]: row.resources[GPU].held for row in by_job}
        off = {name: (round(of_job.get(name, 0), 2), round(held, 2)) for name, held in audited.items()}
        sys.stderr.write(f"off {sorted(off.items(), key=lambda each: -abs(each[1][0] - each[1][1]))[:6]}\n")
        for gap in read.gaps(store):
            sys.stderr.write(f"gap {gap.until - gap.since:.1f} s: {gap.text}\n")
        assert told == pytest.approx(dict(truth), rel=EXACT)
        for name, each in jobs.items():
            story = [(one.epoch, one.what, one.text) for one in read.story(store, EVERYTHING, NAMESPACE, name)]
            counts = Counter(what for _, what, _ in story)
            restarts = each.status.retry_count
            assert counts[What.RESTARTED] <= restarts
            assert counts[What.ENDED] == (0 if name.startswith("base-") else 1), (name, story)
            assert counts[What.SUBMITTED] == counts[What.STARTED] or restarts, (name, story)
            starts = Counter((epoch, text) for epoch, what, text in story if what == What.STARTED)
            assert counts[What.STARTED] >= 1, (name, story)
            assert len(starts) >= 1


def test_what_is_held_is_exact_while_processes_are_killed(
    module_plane: Callable[..., Plane], wait_for: Callable[..., Any]
) -> None:
    """After kills of Muster's processes, what queues held is what the audit log says, and each end stands once."""
    plane = module_plane(ALL, traced=True)
    survives(plane, history_of(plane.root), wait_for)

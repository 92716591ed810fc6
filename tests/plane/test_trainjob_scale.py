"""Many TrainJobs: what each costs the API server, and that looking at them once more costs nothing."""

import contextlib
import re
import sys
import urllib.request
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from gang_jobs import runs
from train_jobs import TrainStory, train_job

from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.kubernetes.core import CONFIG_MAPS, NAMESPACES, SECRETS
from muster.api.volcano.batch import JOBS
from muster.kube.client import Client
from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.long]
WaitFor = Callable[..., Any]
RUNS = {"active": 1, "ready": 1}
WRITES = frozenset({"create", "apply", "patch", "delete", "evict", "bind"})
THEIRS = frozenset({"trainjobs", "jobs", "commands", "secrets", "persistentvolumeclaims"})
"""Kinds that nobody else writes; the controller of Jobs applies the Services and ConfigMaps of its plugins again."""
NOT_ABOUT_THEM = frozenset({"leases", "events", "queues"})
_SAMPLE = re.compile(
    r'muster_kube_requests_total\{code="\d+",resource="(?P<resource>\w+)",verb="(?P<verb>\w+)"\} (?P<n>\S+)'
)


def calls(plane: Plane) -> Counter[tuple[str, str]]:
    """The controller's calls so far, by verb and kind."""
    port = plane.commandlines.ports["controller-status"]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        found = _SAMPLE.finditer(answer.read().decode())
    counts: Counter[tuple[str, str]] = Counter()
    for each in found:
        counts[each["verb"], each["resource"]] += int(float(each["n"]))
    return counts


def versions(client: Client, namespace: str) -> dict[tuple[str, str], str]:
    """The resource version of everything that is made for TrainJobs, and of these."""
    return {
        (kind.kind, each.metadata.name): each.metadata.resource_version
        for kind in (TRAIN_JOBS, JOBS, CONFIG_MAPS, SECRETS)
        for each in client.list(kind, namespace)
        if kind is TRAIN_JOBS or (each.metadata.controller and each.metadata.controller.kind == TRAIN_JOBS.kind)
    }


def settled(plane: Plane, wait_for: WaitFor) -> None:
    """Waits until every key has had its pass."""

    def idle() -> bool:
        port = plane.commandlines.ports["controller-status"]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            text = answer.read().decode()
        return 'muster_kube_leading{lease="muster-controller"} 1' in text and not re.search(
            r'muster_kube_queue_depth\{queue="\w+"\} [1-9]', text
        )

    wait_for(idle, 120, what="the controller has nothing to do")


def run(plane: Plane, namespace: str, wait_for: WaitFor, jobs: int, timeout_s: float) -> None:
    """So many TrainJobs from submission to their end, then the same ones under a controller that is started anew."""
    with contextlib.closing(plane.client()) as client, TrainStory(client, namespace) as story:
        wait_for(
            lambda: not any(each.metadata.deletion_timestamp for each in client.list(NAMESPACES)),
            120,
            what="no namespace of another test is being deleted: its Jobs are written to, and that is counted here",
        )
        before = calls(plane)

        def submit(number: int) -> None:
            resources = {"resourcesPerNode": {"requests": {"cpu": "10m"}}}
            client.create(TRAIN_JOBS, train_job(f"t{number}", run_s=1, trainer=resources), namespace)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(submit, range(jobs)))

        def ended() -> bool:
            return (
                sum(any(each[0] == "Complete" for each in story.held(f"t{number}")) for number in range(jobs)) == jobs
            )

        wait_for(ended, timeout_s, what=f"{jobs} TrainJobs are complete")
        settled(plane, wait_for)
        each = {key: count / jobs for key, count in (calls(plane) - before).items()}
        report = ", ".join(f"{verb} {kind} {n:.2f}" for (verb, kind), n in sorted(each.items()) if n >= 0.005)
        writes = sum(n for (verb, kind), n in each.items() if verb in WRITES and kind not in NOT_ABOUT_THEM)
        sys.stderr.write(f"\n{jobs} TrainJobs, calls of the controller per job: {report}; writes {writes:.2f}\n")
        unfinished = [train_job(f"runs{number}") for number in range(10)]
        for one in unfinished:
            client.create(TRAIN_JOBS, one, namespace)
        running = [one["metadata"]["name"] for one in unfinished]
        wait_for(lambda: all(story.counts(name, "node")[-1:] == [RUNS] for name in running), 60, what="all to run")
        wait_for(
            lambda: all(runs(client, namespace, name, 1) for name in running),
            60,
            what="each Job says so, too: its own pass may come later",
        )
        settled(plane, wait_for)
        plane.part("controller").stop()  # whatever it was still writing is written now
        before_restart = versions(client, namespace)
        plane.mend()
        settled(plane, wait_for)
        again = {key: n for key, n in calls(plane).items() if key[0] in WRITES and key[1] in THEIRS and n}
        assert not again, "looking once more writes nothing"
        assert versions(client, namespace) == before_restart


def test_some_train_jobs(plane: Plane, namespace: str, wait_for: WaitFor) -> None:
    """Thirty."""
    run(plane, namespace, wait_for, 30, 120)


@pytest.mark.storm
@pytest.mark.timeout(1800)
def test_a_thousand_train_jobs(fresh_plane: Callable[..., Plane], wait_for: WaitFor) -> None:
    """A thousand, on a plane of their own; most passes wait for the API server, so there are more of them at once."""
    run(fresh_plane(nodes=32, settings={"controller": {"workers": 12}}), "default", wait_for, 1000, 1200)

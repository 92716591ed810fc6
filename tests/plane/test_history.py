"""The history of a plane: what is told of gangs, and that it is exact while processes are killed at random moments."""

import json
import os
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple

import held_by_audit
import histories
import pytest
import told_by_audit
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from click.testing import CliRunner
from gang_jobs import attempt, job, metric
from page_server import page_server
from postgres import postgres
from sqlalchemy import select
from tenants import bind, user

from history import read
from history.folding import fold_namespace
from history.model import DAY_MS, EVERYTHING, What
from history.retain import tidy
from history.schema import HOLDINGS, METADATA
from history.store import HistoryStore
from history.usage import SEEN, usage
from muster.api.base import Resource
from muster.api.kubernetes.core import CONFIG_MAPS, NAMESPACES, NODES, PODS, PRIORITY_CLASSES
from muster.api.names import QUEUE, SYSTEM_NAMESPACE, USAGE
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import QUEUES
from muster.kube.client import Client
from musterctl.app import main
from musterctl.cluster import whole
from musterctl.plane.plane import Plane
from musterctl.plane.state import ALL, CONTROLLER, EXTENDER, HISTORY, history_of

pytestmark = [pytest.mark.plane, pytest.mark.slow]
WaitFor = Callable[..., Any]
NAMESPACE = "default"
QUEUES_OF_TEST = ("research", "product")
EXACT = 0.001
"""The part by which held seconds may differ from the audit log's."""
GPU = "nvidia.com/gpu"
BATCH_JOBS: Resource[dict[str, Any]] = Resource("batch", "v1", "jobs", "Job", dict[str, Any])
PRIORITY = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}


class Storm(NamedTuple):
    """What a storm is like."""

    lasts_s: float
    run_s: tuple[float, float]
    """How long gangs run, at least and at most."""
    pause_s: tuple[float, float]
    """Between two gangs."""
    base: bool
    """Gangs that stay all the time are beside them."""
    kills: tuple[str, ...]
    """Parts of which one is killed every few seconds."""

    @property
    def ends_s(self) -> float:
        """After which time all gangs have ended that came in it, the last failing three times."""
        return 180.0 + 4 * self.run_s[1]


SHORT = Storm(90.0, (3.0, 12.0), (0.5, 2.5), base=True, kills=(HISTORY, EXTENDER, CONTROLLER))
LONG = Storm(240.0, (40.0, 70.0), (4.0, 10.0), base=False, kills=(HISTORY, *2 * (EXTENDER, CONTROLLER)))
"""Runs beside which the time is short that a binding and an end take, which the audit log cannot resolve. The recorder
is killed less often: what happens while it does not run it knows to the second only."""


def plain(name: str, kubelet: dict[str, str] | None = None) -> dict[str, Any]:
    """A Job of Kubernetes of two pods of a whole node each, which start together; none may fail."""
    annotations = {f"kwok.muster.dev/{key}": value for key, value in (kubelet or {}).items()}
    containers = [{"name": "main", "image": "none", "resources": {"limits": {GPU: 8}}}]
    template = {"metadata": {"annotations": annotations}, "spec": {"restartPolicy": "Never", "containers": containers}}
    meta = {"name": name, "labels": {QUEUE: "default"}, "annotations": {"muster.dev/min-member": "2"}}
    return {"metadata": meta, "spec": {"parallelism": 2, "completions": 2, "backoffLimit": 0, "template": template}}


def prepare(client: Client) -> None:
    """Two queues, and two priorities."""
    for name in QUEUES_OF_TEST:
        client.create(QUEUES, {"metadata": {"name": name}, "spec": {"weight": 1}})
    for name, value in {"low": 1, "high": 1000, "base": 10_000}.items():
        client.apply(PRIORITY_CLASSES, {**PRIORITY, "metadata": {"name": name}, "value": value})


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


def storm(plane: Plane, client: Client, chance: random.Random, like: Storm) -> None:
    """Gangs come, run, fail and are evicted beside large ones that stay, and processes are killed meanwhile."""
    for queue in QUEUES_OF_TEST if like.base else ():
        client.create(JOBS, manifest(f"base-{queue}", queue, 3, gpus=8, priority="base"), NAMESPACE)
    number, kills = 0, list[str]()
    ends = time.monotonic() + like.lasts_s
    next_kill = time.monotonic() + 5.0
    while time.monotonic() < ends:
        how: dict[str, Any] = {"gpus": chance.choice([1, 2]), "run_s": round(chance.uniform(*like.run_s), 1)}
        how |= {"exit_code": int(chance.random() < 0.2), "priority": chance.choice(["low", "low", "high"])}
        one = manifest(f"g{number}", chance.choice(QUEUES_OF_TEST), chance.choice([1, 2, 4, 8]), **how)
        attempt(lambda one=one: client.create(JOBS, one, NAMESPACE), refused=True)  # type: ignore[misc]
        number += 1
        time.sleep(chance.uniform(*like.pause_s))
        if time.monotonic() > next_kill:
            part = chance.choice(like.kills)
            plane.part(part).kill()
            plane.part(part).start()
            kills.append(part)
            next_kill = time.monotonic() + chance.uniform(5.0, 12.0)
    sys.stderr.write(f"{number} gangs, killed {dict(Counter(kills))}\n")


def done(client: Client) -> bool:
    """Whether all gangs but those that run for ever have ended."""
    jobs = [each for each in client.list(JOBS, NAMESPACE) if not each.metadata.name.startswith("base-")]
    return all(each.status.state.phase in {"Completed", "Failed"} for each in jobs)


def agrees(
    store: HistoryStore, audited: list[held_by_audit.Held], queue_of: dict[str, str], until: float, *, strictly: bool
) -> None:
    """Held seconds are those of the audit log within 0.1 %, or as near as its own times tell.

    Unless `strictly`, what the store itself says that it did not see as it happened may be off by as much as it says.
    """
    with store.engine.connect() as connection:
        unsure = {uid: ms / 1000 for uid, ms in connection.execute(select(HOLDINGS.c.pod, HOLDINGS.c.within))}
    assert {one.uid for one in audited if one.until is None or one.until.last_s > 0} <= unsure.keys()
    least, most, stated = Counter[str](), Counter[str](), Counter[str]()
    for one in audited:
        between, queue = one.seconds(until), queue_of[one.job]
        least[queue] += one.gpus * between.first_s  # type: ignore[assignment]
        most[queue] += one.gpus * between.last_s  # type: ignore[assignment]
        stated[queue] += one.gpus * unsure[one.uid]  # type: ignore[assignment]
    rows = usage(store, EVERYTHING, ("queue",), since=0, until=until, now=until)
    held = {row.key[0]: row.resources[GPU].held for row in rows}
    assert held.keys() == most.keys()
    for queue, told in held.items():
        middle = (least[queue] + most[queue]) / 2
        sys.stderr.write(
            f"{queue}: told {told:.2f}, audited {least[queue]:.2f} to {most[queue]:.2f} GPU seconds "
            f"({(most[queue] - least[queue]) / middle:.3%} wide), {told / middle - 1:+.3%} of its middle, "
            f"not seen {stated[queue]:.2f}\n"
        )
        slack = 0.0 if strictly else stated[queue]
        assert min(least[queue], middle * (1 - EXACT)) - slack <= told <= max(most[queue], middle * (1 + EXACT)) + slack


def survives(plane: Plane, url: str, wait_for: WaitFor, like: Storm = SHORT) -> None:
    """The storm, and what must hold of the history afterwards."""
    seed = int(os.environ.get("MUSTER_SEED") or random.randrange(10**6))  # noqa: S311 - no secret
    sys.stderr.write(f"\nhistory seed {seed}\n")
    client = plane.client()
    prepare(client)
    storm(plane, client, random.Random(seed), like)  # noqa: S311 - no secret
    wait_for(lambda: done(client), like.ends_s, "all gangs to end")
    until = time.time()
    with closing(HistoryStore.for_reading(url)) as store:
        wait_for(lambda: int(store.note(SEEN) or 0) > (until + 1) * 1000, 60, "the recorder to have looked")
        jobs = {each.metadata.name: each for each in client.list(JOBS, NAMESPACE)}
        queue_of = {name: each.spec.queue for name, each in jobs.items()}
        agrees(store, held_by_audit.held(plane), queue_of, until, strictly=like is LONG)
        told = told_by_audit.told(store)
        happened = told_by_audit.happened(plane, told)
        counts = Counter(each.what for each in happened.elements())
        sys.stderr.write(f"{len(told)} happenings told, by the audit log {dict(counts)}\n")
        assert (told - happened, happened - told) == (Counter(), Counter())
        for gap in read.gaps(store):
            sys.stderr.write(f"gap {gap.until - gap.since:.1f} s: {gap.text}\n")
        for name, each in jobs.items():
            story = [(one.epoch, one.what, one.text) for one in read.events_of_gang(store, EVERYTHING, NAMESPACE, name)]
            counts = Counter(what for _, what, _ in story)
            restarts = each.status.retry_count
            assert counts[What.RESTARTED] <= restarts
            over = each.status.state.phase in {"Completed", "Failed"}
            assert counts[What.ENDED] == int(over), (name, story)
            assert counts[What.STARTED] >= 1, (name, story)


@pytest.fixture(scope="module")
def recorded(module_plane: Callable[..., Plane], wait_for: WaitFor) -> Plane:
    """A plane with a recorder, on which a gang of four GPUs has run."""
    plane = module_plane(ALL)
    client = plane.client()
    client.create(JOBS, job("short", NAMESPACE, replicas=2, gpus=2, run_s=2), NAMESPACE)
    wait_for(lambda: client.get(JOBS, "short", NAMESPACE).status.state.phase == "Completed", 60, "the Job to end")
    return plane


def muster(plane: Plane, *words: str) -> str:
    """What a command prints."""
    result = CliRunner().invoke(main, [*words, f"--kubeconfig={plane.kubeconfig}"])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_commands_tell_it(recorded: Plane, wait_for: WaitFor) -> None:
    """Lists, the story of a gang and its usage, in the words of docs/history.md."""
    wait_for(lambda: "Completed" in muster(recorded, "ps", "--ended"), 30, "the end to be recorded")
    (gang,) = json.loads(muster(recorded, "history", "-A", "-o", "json"))["gangs"]
    assert (gang["name"], gang["kind"], gang["state"], len(gang["nodes"])) == ("short", "Job", "Completed", 1)
    story = json.loads(muster(recorded, "history", "short", "-o", "json"))["story"]
    assert [each["what"] for each in story] == ["submitted", "planned", "started", "ended"]
    (row,) = json.loads(muster(recorded, "usage", "--by", "workload", "-o", "json"))["rows"]
    assert row["key"] == ["default/Job/short"]
    amounts = row["resources"][GPU]
    assert amounts["asked"] >= amounts["held"] >= amounts["used"] > 0
    assert amounts["held"] == pytest.approx(gang["gpu_seconds"])
    assert muster(recorded, "usage", "-o", "csv").splitlines()[0].startswith("queue,user,resource,asked_hours")


def test_what_queues_have_held_is_published(recorded: Plane, wait_for: WaitFor) -> None:
    """The ConfigMap for budgets and the counters say the same as usage."""
    client = recorded.client()

    def published() -> float:
        found: Any = [
            each for each in client.list(whole(CONFIG_MAPS), SYSTEM_NAMESPACE) if each["metadata"]["name"] == USAGE
        ]
        told = json.loads(found[0]["data"]["usage.json"]) if found else {"queues": {}}
        return float(told["queues"].get("default", {}).get("seconds", {}).get(GPU, 0.0))

    line = f'muster_history_held_seconds_total{{queue="default",resource="{GPU}"}}'
    (row,) = json.loads(muster(recorded, "usage", "--by", "queue", "-o", "json"))["rows"]
    wait_for(lambda: published() == pytest.approx(row["resources"][GPU]["held"], abs=0.01), 40, "it to be published")
    assert metric(recorded, "history", line) == pytest.approx(published(), abs=0.01)


def test_users_see_their_own(
    recorded: Plane, wait_for: WaitFor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With --server users see the gangs of their namespaces and their usage, and nothing of others."""
    monkeypatch.setenv("MUSTER_HISTORY", history_of(recorded.root))
    configs = {}
    for namespace in (NAMESPACE, "elsewhere"):
        subject, configs[namespace] = user(recorded, namespace, tmp_path, f"reader-of-{namespace}")
        bind(recorded, "muster-view", subject)
    recorded.client().create(JOBS, job("other", "elsewhere", replicas=1), "elsewhere")
    with page_server(recorded, tmp_path / "page", wait_for) as server:
        monkeypatch.delenv("MUSTER_HISTORY")

        def told(namespace: str, *words: str) -> Any:
            more = [
                f"--kubeconfig={configs[namespace]}",
                f"--server={server.url}",
                f"--server-ca={server.authority_file}",
            ]
            result = CliRunner().invoke(main, [*words, "-o", "json", *more])
            assert result.exit_code == 0, result.output
            return json.loads(result.stdout)

        wait_for(lambda: server.ask("/api/usage")[0] == HTTPStatus.UNAUTHORIZED, 60, "the page to know its callers")
        assert [each["name"] for each in told(NAMESPACE, "history", "-A")["gangs"]] == ["short"]
        assert [each["key"] for each in told(NAMESPACE, "usage", "--by", "workload")["rows"]] == [["default/Job/short"]]
        wait_for(lambda: len(told("elsewhere", "history", "-A")["gangs"]) == 1, 30, "the other gang to be recorded")
        assert [each["name"] for each in told("elsewhere", "history", "-A")["gangs"]] == ["other"]
        assert told("elsewhere", "history", "short", "-n", NAMESPACE)["story"] == []
        rows = told("elsewhere", "usage", "--by", "workload")["rows"]
        assert [each["key"] for each in rows] == [["elsewhere/Job/other"]]


def test_what_users_and_others_do_to_a_job_is_told(recorded: Plane, wait_for: WaitFor) -> None:
    """A Job of Kubernetes that is displaced, moved and held, that loses a pod, and whose successor fails."""
    client = recorded.client()
    client.create(QUEUES, {"metadata": {"name": "moved-to"}, "spec": {"weight": 1}})
    client.create(NAMESPACES, {"metadata": {"name": "urgent"}})
    client.apply(PRIORITY_CLASSES, {**PRIORITY, "metadata": {"name": "urgent"}, "value": 1000})

    def reported(*options: str) -> list[str]:
        """Each thing that happened, with its text."""
        found = json.loads(muster(recorded, "history", "plain", "-o", "json", *options))["story"]
        return [f"{each['what']}: {each['text']}" for each in found]

    def expect_event(part: str, times: int = 1) -> None:
        wait_for(lambda: sum(part in each for each in reported()) == times, 60, f"{part} to be recorded")

    client.create(BATCH_JOBS, plain("plain"), NAMESPACE)
    expect_event("started")
    displaces = job("displaces", "urgent", replicas=len(client.list(NODES)))
    displaces["spec"]["priorityClassName"] = "urgent"
    client.create(JOBS, displaces, "urgent")
    expect_event("makes room: for Job displaces in namespace urgent")
    client.delete(JOBS, "displaces", "urgent")
    expect_event("started", 2)
    muster(recorded, "move", "job.batch/plain", "--queue", "moved-to")
    expect_event("moved: from queue default to moved-to, by muster-admin")
    muster(recorded, "hold", "job.batch/plain")
    expect_event("suspended: the workload needs no pods")
    muster(recorded, "release", "job.batch/plain")
    expect_event("started", 3)
    [first, *_] = [each.metadata for each in client.list(PODS, NAMESPACE) if each.metadata.name.startswith("plain")]
    client.delete(PODS, first.name, NAMESPACE)
    expect_event(f"member deleted: {first.name} on ")
    expect_event(f"ended: failed: more of its pods failed than its backoffLimit 0 allows: pod {first.name} was deleted")
    muster(recorded, "cancel", "job.batch/plain")
    wait_for(lambda: not client.list(BATCH_JOBS, NAMESPACE), 60, "its end")
    client.create(BATCH_JOBS, plain("plain", {"run-seconds": "1", "exit-code": "3"}), NAMESPACE)
    # The Job controller may delete the other pod before it fails: only one failure is certain.
    failed = re.compile("ended: failed: plain-.* exit code 3")
    wait_for(lambda: any(map(failed.match, reported())), 60, "the failure of the successor to be recorded")
    assert not [each for each in reported() if "exit code 137" in each]
    titles = [line for line in muster(recorded, "history", "plain").splitlines() if line.startswith("Job plain, ")]
    assert [each.rpartition(": ")[2] for each in titles] == ["Failed", "Failed"]
    client.delete(BATCH_JOBS, "plain", NAMESPACE, propagation="Background")


@pytest.mark.long
def test_what_is_held_is_exact_while_processes_are_killed(fresh_plane: Callable[..., Plane], wait_for: WaitFor) -> None:
    """After kills of Muster's processes, what queues held is what the audit log says, and each end stands once."""
    plane = fresh_plane(ALL, traced=True)
    survives(plane, history_of(plane.root), wait_for)


@pytest.mark.storm
@pytest.mark.timeout(1200)
def test_the_same_holds_in_postgresql(fresh_plane: Callable[..., Plane], wait_for: WaitFor) -> None:
    """The same kills with the history in PostgreSQL."""
    with postgres() as url:
        survives(fresh_plane(ALL, traced=True, settings={HISTORY: {"database": url}}), url, wait_for)


@pytest.mark.storm
@pytest.mark.timeout(1200)
def test_usage_is_exact_within_a_thousandth(fresh_plane: Callable[..., Plane], wait_for: WaitFor) -> None:
    """With longer runs, whose bindings and ends the audit log knows within 0.1 %, usage is that of the log."""
    plane = fresh_plane(ALL, traced=True)
    survives(plane, history_of(plane.root), wait_for, LONG)


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    """A PostgreSQL for the tests of this module."""
    with postgres() as url:
        yield url


@pytest.mark.long
def test_steps_of_the_schema_in_postgresql(database: str) -> None:
    """The tables of a new store are those of the steps, and what is written is read."""
    with closing(HistoryStore.for_writing(database)) as store, store.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []
        assert read.gangs(store, EVERYTHING) == []
        assert store.megabytes() > 0


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
def test_usage_in_postgresql(seed: int) -> None:
    """Usage in PostgreSQL is what every single row comes to, and its rows are the same after folds."""
    with postgres() as url:
        store, now = histories.lived(url, seed)
        with closing(store):
            rows = histories.rows_of(store)
            histories.same_as_rows(store, rows, now, seed)
            before = usage(store, EVERYTHING, ("namespace", "user", "queue"), since=0)
            fold_namespace(store, "a", 9 * DAY_MS, 25 * DAY_MS + 12_345)
            histories.same_as_rows(store, rows, now, seed, ("queue", "namespace", "user", "day"), DAY_MS)
            tidy(store, now, keep_days=1000, keep_usage_days=1000, megabytes=0)
            after = usage(store, EVERYTHING, ("namespace", "user", "queue"), since=0)
    assert [each.key for each in after] == [each.key for each in before]
    for one, other in zip(before, after, strict=True):
        assert one.resources[GPU].held == other.resources[GPU].held

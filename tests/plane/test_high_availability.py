"""Two of each process, under load: each is killed in turn, and the pair that leads sleeps, and nobody is hurt."""

import json
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any
from uuid import uuid4

import pytest
from gang_jobs import History
from replicas import LEASE_OF, PARTS, Replicas, Users, stop_signal

from muster.api.kubernetes.core import NAMESPACES, PODS
from muster.api.volcano.batch import JOBS
from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.long]
WaitFor = Callable[..., Any]
PER_MINUTE = 500
LEASE_S = 15.0
RESUMES_S = 2 * LEASE_S
"""What is left of the dead one's lease, the tries of the other one, and a machine that does all at once."""
LOST_S = 5.0
"""How long a creation may be refused: until the Service knows that a webhook is gone, and a connection is made anew."""
BARRIER_S = 10.0


@pytest.fixture(scope="module")
def both(
    module_plane: Callable[..., Plane], tmp_path_factory: pytest.TempPathFactory, wait_for: WaitFor
) -> Iterator[Replicas]:
    """A plane with two of each process, and a Service before the webhooks."""
    replicas = Replicas(module_plane(nodes=16), tmp_path_factory.mktemp("second"), wait_for)
    for pod in ("scheduler", "controller"):
        wait_for(lambda pod=pod: replicas.leads(pod) == "first", 60, f"the first {pod} to lead")
    try:
        for pod in PARTS:
            replicas.start(pod, "second")
        with replicas.service():
            yield replicas
    finally:
        replicas.second.stop()


@pytest.fixture
def busy(both: Replicas, wait_for: WaitFor) -> Iterator[tuple[Users, History]]:
    """Users, and what becomes of all pods; afterwards every gang has ended well, and none was split."""
    namespace = f"busy-{uuid4().hex[:8]}"
    both.client.create(NAMESPACES, {"metadata": {"name": namespace}})
    with History(both.client, namespace) as history:
        with Users(both.client, namespace, PER_MINUTE) as users:
            wait_for(lambda: _bound_after(history, 0.0), 60, "the first gang to be bound")
            yield users, history
        wait_for(lambda: {each.status.state.phase for each in both.client.list(JOBS, namespace)} == {"Completed"}, 120)
        wait_for(lambda: {each.status.phase for each in both.client.list(PODS, namespace)} == {"Succeeded"}, 60)
    assert not users.unshaped
    assert all(len(life.nodes) <= 1 for life in history.pods.values())
    for number in range(1, users.gangs + 1):
        assert history.half_placed_s(f"gang-{number}-", 4) < 2 * BARRIER_S


def _bound_after(history: History, moment: float) -> list[float]:
    """When members of gangs were bound that were created after a moment."""
    members = [life for life in [*history.pods.values()] if life.gang and life.created > moment]
    return [life.bound for life in members if life.bound is not None]


@pytest.mark.parametrize("which", ["first", "second"])
@pytest.mark.parametrize("pod", PARTS)
def test_one_is_killed(both: Replicas, busy: tuple[Users, History], wait_for: WaitFor, pod: str, which: str) -> None:
    """No admission fails for long, and scheduling goes on within the lease of whoever was killed."""
    users, history = busy
    if pod in LEASE_OF:
        wait_for(lambda: both.leads(pod) == which, 30, "it to lead")
    killed_s, created = time.monotonic(), users.created
    both.kill(pod, which)
    wait_for(lambda: users.created > created + PER_MINUTE / 10, 30, "admissions without it")
    assert min(wait_for(lambda: _bound_after(history, killed_s), 60, "a new gang without it")) - killed_s < RESUMES_S
    if pod in LEASE_OF:
        assert both.leads(pod) != which
    both.start(pod, which)
    assert users.longest_s < LOST_S


def test_a_rolling_upgrade_loses_nothing(both: Replicas, busy: tuple[Users, History], wait_for: WaitFor) -> None:
    """Each is ended as a Deployment does it, and comes back before the next one goes; no Job is lost, nor held up."""
    users, history = busy
    for pod in PARTS:
        for which in ("first", "second"):
            ended_s = time.monotonic()
            both.end(pod, which)
            found = wait_for(lambda since=ended_s: _bound_after(history, since), 60, f"a gang without {which} {pod}")
            assert min(found) - ended_s < RESUMES_S
            both.start(pod, which)
    assert users.longest_s < LOST_S


def late_bindings(both: Replicas, since_s: float) -> list[str]:
    """Pods that the first pair has bound after a moment (seconds since the epoch)."""
    found = []
    with (both.plane.root / "audit.log").open(encoding="utf-8") as lines:
        for line in lines:
            event = json.loads(line)
            reference = event.get("objectRef") or {}
            if (reference.get("resource"), reference.get("subresource")) != ("pods", "binding"):
                continue
            credentials = event["user"]["extra"]["authentication.kubernetes.io/credential-id"]
            received_s = datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp()
            if both.second.credential not in credentials and received_s > since_s:
                found.append(f"{reference['name']}: {event['responseStatus']['code']}")
    return found


@pytest.mark.parametrize(
    "sleeps_s", [LEASE_S + 5, pytest.param(60.0, marks=pytest.mark.storm)], ids=["longer-than-a-lease", "a-minute"]
)
def test_a_sleeper_binds_nothing(
    both: Replicas, busy: tuple[Users, History], wait_for: WaitFor, sleeps_s: float
) -> None:
    """Frozen in the middle of its work, with members at the barrier and bindings on their way."""
    users, history = busy
    if both.leads("scheduler") != "first":
        both.kill("scheduler", "second")
        wait_for(lambda: both.leads("scheduler") == "first", 60, "the first pair to lead")
        both.start("scheduler", "second")
        began_s = time.monotonic()
        wait_for(lambda: _bound_after(history, began_s), 60, "it to bind")
    assert late_bindings(both, 0.0), "the audit log tells who binds"
    frozen_s = time.monotonic()
    both.signal_first("scheduler", stop_signal(on=True))
    try:
        wait_for(lambda: both.leads("scheduler") == "second", 60, "the second pair to lead")
        assert min(wait_for(lambda: _bound_after(history, frozen_s), 60, "a new gang")) - frozen_s < RESUMES_S
        wait_for(lambda: time.monotonic() > frozen_s + sleeps_s, sleeps_s + 5, "the end of the sleep")
        woken_s, gangs = time.time(), users.gangs
    finally:
        both.signal_first("scheduler", stop_signal(on=False))
    wait_for(lambda: users.gangs > gangs + 5, 60, "more gangs")
    assert both.leads("scheduler") == "second"
    assert late_bindings(both, woken_s) == []
    for part in PARTS["scheduler"]:
        both.plane.part(part).kill()  # kube-scheduler ends by itself, but when it has found out about its lease
    both.start("scheduler", "first")

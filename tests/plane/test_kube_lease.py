"""One lease, one leader: candidates that stop, die or freeze, and a follower, on a real API server."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from muster.api.kubernetes.core import LEASES, Lease
from muster.kube.client import Client
from muster.kube.lease import Elector, LeaseFollower
from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.api]

WaitFor = Callable[..., Any]
TIMES: dict[str, Any] = {"lease_duration_s": 3.0, "renew_deadline_s": 2.0, "retry_period_s": 0.3}

CANDIDATE = f"""
import sys
import structlog
from muster.kube.client import Client
from muster.kube.lease import Elector

structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))  # or a message may begin an answer's line
kubeconfig, namespace = sys.argv[1:]
story = []
elector = Elector(
    Client.load(kubeconfig), namespace, "lease", "frozen", **{TIMES},
    on_started=lambda: story.append("started"), on_stopped=lambda: story.append("stopped"),
)
elector.start()
for _ in sys.stdin:
    print("answer", elector.leading, *story, flush=True)
"""
"""A candidate that answers each line with whether it leads, and what its callbacks were told so far."""


@pytest.fixture
def elector(client: Client, namespace: str) -> Iterator[Callable[..., Elector]]:
    """Makes candidates and stops them after the test."""
    made: list[Elector] = []

    def make(identity: str, **options: Any) -> Elector:
        made.append(Elector(client, namespace, "lease", identity, **TIMES | options))
        made[-1].start()
        return made[-1]

    yield make
    for one in made:
        one.stop()


class Candidate:
    """A candidate in a process of its own, which can be frozen."""

    def __init__(self, kubeconfig: Path, namespace: str) -> None:
        command = [sys.executable, "-c", CANDIDATE, str(kubeconfig), namespace]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self) -> None:
        """Sends a question; a frozen process answers it first thing when it goes on."""
        assert self.process.stdin
        self.process.stdin.write("?\n")
        self.process.stdin.flush()

    def answer(self) -> list[str]:
        """The next answer."""
        assert self.process.stdout
        for line in self.process.stdout:
            if line.startswith("answer "):
                return line.split()[1:]
        pytest.fail("the candidate ended")

    def end(self) -> None:
        """Ends the process, frozen or not."""
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def candidate(plane: Plane, namespace: str) -> Iterator[Candidate]:
    """The candidate "frozen"."""
    candidate = Candidate(plane.kubeconfig, namespace)
    yield candidate
    candidate.end()


def holder(client: Client, namespace: str) -> Lease:
    """The lease."""
    return client.get(LEASES, "lease", namespace)


def test_a_stopped_leader_gives_up(
    client: Client, namespace: str, elector: Callable[..., Elector], wait_for: WaitFor
) -> None:
    """After it told its own work to stop; the next one takes over without waiting for the end of the lease."""
    story: list[str] = []
    first = elector("first", on_started=lambda: story.append("1 on"), on_stopped=lambda: story.append("1 off"))
    wait_for(lambda: first.leading)
    acquired = holder(client, namespace).spec
    assert (acquired.holder_identity, acquired.lease_duration_seconds, acquired.lease_transitions) == ("first", 3, 0)
    second = elector("second", on_started=lambda: story.append("2 on"))
    wait_for(lambda: holder(client, namespace).spec.renew_time != acquired.renew_time)
    renewed = holder(client, namespace).spec
    assert (renewed.acquire_time, renewed.lease_transitions) == (acquired.acquire_time, 0)
    assert not second.leading
    first.stop()
    assert not first.leading
    assert not holder(client, namespace).spec.holder_identity or second.leading
    wait_for(lambda: second.leading, timeout_s=2.5)
    taken = holder(client, namespace).spec
    assert (taken.holder_identity, taken.lease_transitions) == ("second", 1)
    assert taken.acquire_time != acquired.acquire_time
    assert story == ["1 on", "1 off", "2 on"]


def test_a_frozen_leader_knows_that_it_does_not_lead_any_more(
    client: Client, namespace: str, elector: Callable[..., Elector], candidate: Candidate, wait_for: WaitFor
) -> None:
    """The first thing it says when it goes on, before it could talk to anybody; and it does not take the lease back."""
    wait_for(lambda: client.list(LEASES, namespace))

    def leads() -> bool:
        candidate.ask()
        return candidate.answer() == ["True", "started"]

    wait_for(leads)
    candidate.process.send_signal(signal.SIGSTOP)
    other = elector("other")
    assert not other.leading
    wait_for(lambda: other.leading, timeout_s=10)
    candidate.ask()
    candidate.process.send_signal(signal.SIGCONT)
    assert candidate.answer()[0] == "False"

    def stopped() -> bool:
        candidate.ask()
        return candidate.answer() == ["False", "started", "stopped"]

    wait_for(stopped)
    assert other.leading
    assert holder(client, namespace).spec.holder_identity == "other"


def test_a_lost_lease_is_seen(
    client: Client, namespace: str, elector: Callable[..., Elector], wait_for: WaitFor
) -> None:
    """Somebody took the lease away by hand; the leader stops at its next renewal and waits its turn."""
    story: list[str] = []
    first = elector("first", on_started=lambda: story.append("on"), on_stopped=lambda: story.append("off"))
    wait_for(lambda: first.leading)
    client.merge_patch(LEASES, "lease", {"spec": {"holderIdentity": "thief"}}, namespace)
    wait_for(lambda: story == ["on", "off"], timeout_s=2)
    assert not first.leading
    wait_for(lambda: first.leading, timeout_s=10)
    assert holder(client, namespace).spec.lease_transitions == 1


def test_a_failing_leader(client: Client, namespace: str, elector: Callable[..., Elector], wait_for: WaitFor) -> None:
    """It does not sit on the lease, and tries again."""
    failures = iter([True, False])

    def start() -> None:
        if next(failures):
            raise RuntimeError("not yet")

    first = elector("first", on_started=start)
    wait_for(lambda: [lease.spec.lease_transitions for lease in client.list(LEASES, namespace)] == [1])
    wait_for(lambda: first.leading)


def test_followers_have_leaders(
    client: Client, namespace: str, elector: Callable[..., Elector], wait_for: WaitFor
) -> None:
    """From the leader's first renewal until it gives the lease up."""
    ours = LeaseFollower(client, namespace, "lease", "pod-a_")
    theirs = LeaseFollower(client, namespace, "lease", "pod-b_")
    ours.start()
    theirs.start()
    try:
        assert not ours.active
        first = elector("pod-a_1")
        wait_for(lambda: ours.active)
        late = LeaseFollower(client, namespace, "lease", "pod-a_")
        late.start()
        wait_for(lambda: late.active)
        late.stop()
        assert not late.active
        elector("pod-b_1")
        assert not theirs.active
        first.stop()
        wait_for(lambda: theirs.active and not ours.active)
    finally:
        ours.stop()
        theirs.stop()

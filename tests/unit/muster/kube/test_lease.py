"""What an elector and a follower conclude from what they see, by the clock."""

import threading
from typing import Any
from unittest.mock import Mock

import pytest
from builders.clocks import Clock
from guarded_api import GuardedApi, Sent
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

import muster.kube
from muster.api.kubernetes.core import LEASES, Lease, LeaseSpec
from muster.kube.client import Client
from muster.kube.config import ClientConfig
from muster.kube.errors import AlreadyExists, NotFound
from muster.kube.lease import Elector, LeaseFollower


@pytest.fixture
def clock() -> Clock:
    """A clock that stands still."""
    return Clock()


@pytest.fixture
def client() -> Client:
    """A client that is never asked."""
    return Client(ClientConfig(server="http://127.0.0.1:1"))


def lease(holder: str | None, renewed: str, seconds: int = 15) -> Lease:
    """A lease as its holder wrote it."""
    return Lease(spec=LeaseSpec(holder_identity=holder, renew_time=renewed, lease_duration_seconds=seconds))


def elector_of(client: Client, clock: Clock) -> Elector:
    """A candidate."""
    return Elector(client, "ns", "lease", "me", monotonic_s=clock)


@pytest.fixture
def follower(client: Client, clock: Clock) -> LeaseFollower:
    """A follower of holders in pod-a that has seen its first list."""
    follower = LeaseFollower(client, "ns", "lease", "pod-a_", monotonic_s=clock)
    follower._reflector.first.set()
    return follower


def test_follows_its_leader(follower: LeaseFollower, clock: Clock) -> None:
    """Active with its own leader while that renews in time, not with another, not without one, even after a freeze."""
    seen: Lease | None = None
    for passed_s, new, active in (
        (0, lease("pod-a_1", "t1"), True),
        (0, lease("pod-b_1", "t2"), False),
        (0, lease("pod-a_2", "t3"), True),
        (14.9, lease("pod-a_2", "t3"), True),
        (0.1, lease("pod-a_2", "t3"), False),  # somebody put a label on the lease of a dead leader
        (0, lease("pod-a_2", "t4"), True),
        (0, lease("", "t5"), False),
        (0, lease("pod-a_2", "t6"), True),
        (0, None, False),
    ):
        clock.now += passed_s
        follower.observe(seen, new)
        assert follower.active == active, (seen, new)
        seen = new


def test_a_lease_of_unknown_age_does_not_count(client: Client, clock: Clock) -> None:
    """What the first list shows may be hours old; the next renewal proves that the leader lives."""
    follower = LeaseFollower(client, "ns", "lease", "pod-a_", monotonic_s=clock)
    follower.observe(None, lease("pod-a_1", "t1"))
    assert not follower.active
    follower.observe(lease("pod-a_1", "t1"), lease("pod-a_1", "t2"))
    assert follower.active


def test_another_holder_is_left_in_peace_for_its_duration(client: Client, clock: Clock) -> None:
    """Counted from when we first saw its last write, by our own clock, and with its own duration."""
    elector = elector_of(client, clock)
    other = lease("other", "t1", seconds=20).spec
    assert not elector._free(other)
    clock.now += 19.9
    assert not elector._free(other)
    renewed = lease("other", "t2", seconds=20).spec
    clock.now += 0.1
    assert not elector._free(renewed)
    clock.now += 20
    assert elector._free(renewed)


@pytest.mark.parametrize("holder", [None, "", "me"])
def test_a_lease_without_another_holder_is_free(client: Client, clock: Clock, holder: str | None) -> None:
    """Given up, never held, or our own."""
    assert elector_of(client, clock)._free(lease(holder, "t1").spec)


def test_transitions_and_acquisition_are_kept_while_renewing(client: Client, clock: Clock) -> None:
    """They change with the holder only."""
    elector = elector_of(client, clock)
    assert elector._record(None)["leaseTransitions"] == 0
    assert elector._record(LeaseSpec(holder_identity="other", lease_transitions=4))["leaseTransitions"] == 5
    assert elector._record(LeaseSpec(holder_identity="", lease_transitions=4))["leaseTransitions"] == 5
    assert elector._record(LeaseSpec(holder_identity="other"))["leaseTransitions"] == 1
    assert not {"leaseTransitions", "acquireTime"} & set(elector._record(LeaseSpec(holder_identity="me")))


def test_leading_ends_by_the_clock(client: Client, clock: Clock) -> None:
    """Nobody has to tell: the deadline is enough."""
    elector = elector_of(client, clock)
    assert elector._timeout_s == 4, "to read and to write fit into the deadline"
    assert not elector.leading
    elector._renewed_at = clock()
    clock.now += 9.9
    assert elector.leading
    clock.now += 0.1
    assert not elector.leading


@pytest.mark.parametrize(("leading", "level"), [(False, "info"), (True, "warning")])
def test_being_second(
    client: Client, clock: Clock, monkeypatch: pytest.MonkeyPatch, *, leading: bool, level: str
) -> None:
    """Of two candidates that start at once one makes the lease; a leader to whom that happens has lost it."""
    monkeypatch.setattr(client, "get", Mock(side_effect=NotFound("no such lease")))
    monkeypatch.setattr(client, "create", Mock(side_effect=AlreadyExists("the name is taken")))
    elector = elector_of(client, clock)
    elector._renewed_at = clock() if leading else None
    with capture_logs() as logs:
        assert elector._try() == "unknown"
    assert [each["log_level"] for each in logs] == [level]


@pytest.mark.parametrize("seconds", [(10, 10, 2), (15, 2, 2), (15, 10, 0), (15, 2.3, 2)])
def test_times_that_make_no_sense_are_refused(client: Client, seconds: tuple[float, float, float]) -> None:
    """A deadline that is not shorter than the lease would allow two leaders."""
    duration, deadline, retry = seconds
    with pytest.raises(ValueError, match=r"lease duration .* > renew deadline .* > retry period"):
        Elector(client, "ns", "l", "me", lease_duration_s=duration, renew_deadline_s=deadline, retry_period_s=retry)


class Candidate:
    """A candidate for a lease, and the API server that has it."""

    def __init__(self, holder: str = "") -> None:
        self.now = 1000.0
        self.api = GuardedApi(muster.kube)
        if holder:
            self.keep(holder)
        self.stepped: list[str] = []
        self.up = threading.Event()
        self.elector = Elector(
            self.api,  # type: ignore[arg-type]  # the same methods
            "ns",
            "lease",
            "me",
            monotonic_s=lambda: self.now,
            on_started=self._start,
            on_stopped=lambda: self.stepped.append("down"),
        )

    def _start(self) -> None:
        self.stepped.append("up")
        self.up.set()

    def keep(self, holder: str) -> Lease:
        """Another candidate has the lease now."""
        spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": "2027-01-01T00:00:00.000000Z"}
        self.api.kind(LEASES).clear()
        return self.api.add(LEASES, {"metadata": {"name": "lease"}, "spec": spec}, "ns")  # type: ignore[no-any-return]

    @property
    def holder(self) -> str:
        """Who has it."""
        found: Lease = self.api.find(LEASES, "lease", "ns")
        return found.spec.holder_identity or ""

    def first(self, other: str) -> None:
        """Another candidate takes it just before the next write."""

        def meddle(_: Sent) -> None:
            self.api.meddle = lambda _: None
            self.keep(other)

        self.api.meddle = meddle


Step = tuple[float, str, str, list[str]]
"""Seconds that pass, who meddles with the write of the next turn, and then the holder and the calls so far."""


@pytest.mark.parametrize(("holder", "steps"), [
    pytest.param("old", [(0, "", "old", []), (15, "other", "other", []), (0, "", "other", []), (15, "", "me", ["up"])],
        id="both have read that it is free, and the second write names a version that is over"),
    pytest.param("", [(0, "other", "other", [])], id="of two that make it one leads, as the name is taken then"),
    pytest.param("", [(0, "", "me", ["up"]), (9, "other", "other", ["up", "down"]), (1, "", "other", ["up", "down"])],
        id="who has lost it before a renewal learns it from that renewal"),
    pytest.param("", [(0, "", "me", ["up"]), (9, "", "me", ["up"]), (9, "", "me", ["up"])], id="renewed in time"),
    pytest.param("", [(0, "", "me", ["up"]), (10, "", "me", ["up", "down"]), (0, "", "me", ["up", "down", "up"])],
        id="renewed too late, it is won again"),
    pytest.param("me-too", [(0, "", "me-too", [])], id="a name that begins alike is another one"),
])  # fmt: skip
def test_turns_of_a_candidate(holder: str, steps: list[Step]) -> None:
    """It leads from when it is told to start until it is told to stop, and at no other time."""
    candidate = Candidate(holder)
    for passed_s, other, then, stepped in steps:
        candidate.now += passed_s
        if other:
            candidate.first(other)
        candidate.elector._renew_once()
        assert (candidate.holder, candidate.stepped) == (then, stepped)
        assert candidate.elector.leading == (stepped[-1:] == ["up"])


@pytest.mark.parametrize(("delay_s", "meddle"), [(3.3, ""), (2.4, "labelled"), (2.4, "deleted")])
def test_a_slow_api_server_costs_no_lease(monkeypatch: pytest.MonkeyPatch, delay_s: float, meddle: str) -> None:
    """A renewal is one request, or three if the lease has changed meanwhile, and the next one does not wait longer."""
    candidate = Candidate()

    def slow(name: str) -> None:
        fast = getattr(candidate.api, name)

        def called(*given: Any, **more: Any) -> Any:
            candidate.now += delay_s
            return fast(*given, **more)

        monkeypatch.setattr(candidate.api, name, called)

    for name in ("get", "create", "merge_patch"):
        slow(name)
    for turn in range(6):
        if turn == 3 and meddle == "labelled":
            candidate.keep("me")
        elif turn == 3 and meddle:
            candidate.api.kind(LEASES).clear()
        pause_s = candidate.elector._turn()
        candidate.now += pause_s
        assert (candidate.stepped, candidate.holder) == (["up"], "me")


@pytest.mark.parametrize(("moment", "holder"), [("", ""), ("before", "other"), ("between", "other")])
def test_a_lease_is_given_up_unless_another_has_it(moment: str, holder: str) -> None:
    """Whether that was seen, or it took it in that moment; without a holder the next candidate need not wait."""
    candidate = Candidate()
    candidate.elector._renew_once()
    if moment == "before":
        candidate.keep("other")
    elif moment == "between":
        candidate.first("other")
    candidate.elector._release()
    assert candidate.holder == holder


def led() -> float | None:
    """What the metric of the lease says."""
    return REGISTRY.get_sample_value("muster_kube_leading", {"lease": "lease"})


def test_a_candidate_has_a_thread_of_its_own() -> None:
    """It stands at once, and gives the lease up at the end, after it was told to stop."""
    candidate = Candidate()
    candidate.elector.stop()
    candidate = Candidate()
    candidate.elector.start()
    assert candidate.up.wait(20)
    assert (candidate.elector.leading, led()) == (True, 1)
    candidate.elector.stop()
    assert not candidate.elector._thread.is_alive()
    assert (candidate.stepped, candidate.holder, led()) == (["up", "down"], "", 0)


@pytest.mark.parametrize("fails", ["_on_started", "_on_stopped"])
def test_a_defect_of_who_is_told_ends_no_candidacy(fails: str) -> None:
    """Who cannot start leads no longer, and gives the lease up; whoever cannot stop does not lead all the same."""
    candidate = Candidate()
    setattr(candidate.elector, fails, Mock(side_effect=RuntimeError("a defect")))
    with capture_logs() as logs:
        candidate.elector._renew_once()
        if fails == "_on_stopped":
            candidate.now += 10
            candidate.elector._renew_once()
    assert [each["log_level"] for each in logs if each["log_level"] == "error"] == ["error"]
    assert not candidate.elector.leading
    assert candidate.stepped == (["down"] if fails == "_on_started" else ["up"])
    assert candidate.holder == ("" if fails == "_on_started" else "me")


def test_a_new_lease_is_whole() -> None:
    """With the duration that others wait for, in full seconds."""
    candidate = Candidate()
    candidate.elector._lease_duration_s = 14.2
    candidate.elector._renew_once()
    spec = candidate.api.find(LEASES, "lease", "ns").spec
    assert (spec.holder_identity, spec.lease_duration_seconds, spec.lease_transitions) == ("me", 15, 0)
    assert spec.acquire_time == spec.renew_time
    candidate.elector._release()
    assert candidate.api.find(LEASES, "lease", "ns").spec.lease_duration_seconds == 1

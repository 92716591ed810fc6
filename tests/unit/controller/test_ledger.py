"""What was done is known before the caches show it."""

from controller.job.expectations import KEPT_S, Ledger
from controller.job.pending_events import Inbox
from controller.job.rules.request import SYNC, Request
from muster.api.batch import Job
from muster.api.core import Pod
from muster.api.meta import ObjectMeta, OwnerReference
from muster.api.scheduling import PodGroup

OWNER = OwnerReference(api_version="batch.volcano.sh/v1alpha1", kind="Job", name="j", uid="u", controller=True)


class Clock:
    """A clock that stands still until told."""

    now = 100.0

    def __call__(self) -> float:
        """The time."""
        return self.now


def pod(name: str, uid: str = "") -> Pod:
    """A pod of owner `u`."""
    return Pod(metadata=ObjectMeta(name=name, namespace="n", uid=uid or name, owner_references=[OWNER]))


def names(pods: list[Pod]) -> list[str]:
    """Their names."""
    return [one.metadata.name for one in pods]


def test_created_pods_are_there_at_once_and_once() -> None:
    """A created pod counts until the cache shows it, and not twice then."""
    ledger = Ledger(Clock())
    ledger.pod_created("u", pod("a"))
    assert names(ledger.pods("u", [])) == ["a"]
    assert ledger.owes("u")
    assert names(ledger.pods("u", [pod("a")])) == ["a"]
    assert names(ledger.pods("u", [])) == [], "the cache showed it, so it is the cache that tells of its end"
    assert not ledger.owes("u")


def test_created_pods_that_never_show_are_forgotten() -> None:
    """A pod that came and went unseen does not count for ever."""
    clock = Clock()
    ledger = Ledger(clock)
    ledger.pod_created("u", pod("a"))
    clock.now += KEPT_S
    assert ledger.pods("u", []) == []


def test_an_event_settles_what_was_noted() -> None:
    """Created and deleted before this process looked again: gone."""
    ledger = Ledger(Clock())
    ledger.pod_created("u", pod("a"))
    ledger.pod_seen(pod("a"), None)
    assert ledger.pods("u", []) == []


def test_deleted_pods_are_on_their_way_out() -> None:
    """The cached pod is left as it is; its successor of the same name is not affected."""
    ledger = Ledger(Clock())
    cached = pod("a")
    ledger.deleted("a")
    assert ledger.pods("u", [cached])[0].metadata.deletion_timestamp
    assert cached.metadata.deletion_timestamp is None
    assert ledger.pods("u", [pod("a", uid="new")])[0].metadata.deletion_timestamp is None


def group(uid: str) -> PodGroup:
    """PodGroup `n/g`."""
    return PodGroup(metadata=ObjectMeta(name="g", namespace="n", uid=uid))


def test_groups() -> None:
    """A deleted group does not exist, its successor does, whatever the cache shows."""
    ledger = Ledger(Clock())
    assert ledger.group("n/g", group("old")) == group("old")
    ledger.deleted("old")
    assert ledger.group("n/g", group("old")) is None
    ledger.group_created(group("new"))
    assert ledger.group("n/g", group("old")) == group("new")
    ledger.group_seen(group("old"), None)
    ledger.group_seen(None, group("new"))
    assert ledger.group("n/g", group("new")) == group("new")


def test_a_group_that_never_shows_is_forgotten() -> None:
    """It came and went between two lists: its Job is looked at again when it counts no more."""
    clock = Clock()
    ledger = Ledger(clock)
    ledger.group_created(group("new"))
    assert ledger.owes("u", "n/g")
    clock.now += KEPT_S
    assert not ledger.owes("u", "n/g")
    assert ledger.group("n/g", None) is None


def job(version: str, uid: str = "u") -> Job:
    """Job `n/j`."""
    return Job(metadata=ObjectMeta(name="j", namespace="n", uid=uid, resource_version=version))


def test_the_newer_job_counts() -> None:
    """Ours while the cache is behind, the cache's when it is ahead or shows another Job."""
    ledger = Ledger(Clock())
    ledger.wrote(job("10"))
    assert ledger.job(job("9")) == job("10")
    assert ledger.job(job("11")) == job("11")
    assert ledger.job(job("9", "another")) == job("9", "another")
    ledger.job_seen(job("9"), job("10"))
    assert ledger.job(job("9")) == job("9")


def test_inbox_keeps_order_and_drops_repeats() -> None:
    """Each request once; what could not be dealt with comes first again; a mere sync is not kept."""
    inbox = Inbox()
    first, second, third = (Request(event="PodFailed", pod=name) for name in "abc")
    for request in (first, second, first, SYNC):
        inbox.put("n/j", request)
    taken = inbox.take("n/j")
    assert taken == [first, second]
    assert inbox.take("n/j") == []
    inbox.put("n/j", third)
    inbox.put_back("n/j", taken[1:])
    assert inbox.take("n/j") == [second, third]

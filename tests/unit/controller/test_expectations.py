"""What was done is known before the caches show it."""

from builders import job as a_job
from builders import job_owner, pod_group
from builders import pod as a_pod
from builders.clocks import Clock
from msgspec import structs

from controller.caches import OwnWrites
from controller.job.expectations import Expectations
from muster.api import names
from muster.api.kubernetes.core import Pod
from muster.api.volcano.batch import Job
from muster.api.volcano.scheduling import PodGroup
from muster.volcano.tasks import JobRef

JOB = JobRef("n/j", "u")


def pod(name: str, uid: str = "", namespace: str = "n") -> Pod:
    """The Job's pod of this task."""
    return a_pod(f"j-{name}-0", namespace, uid=uid or name, task=name, index=0, owner=job_owner("j", "u"))


def tasks(pods: list[Pod]) -> list[str]:
    """Their tasks."""
    return [one.metadata.annotations[names.TASK_SPEC] for one in pods]


def test_created_pods_are_there_at_once_and_once() -> None:
    """A created pod counts until the cache shows it, and not twice then."""
    expectations = Expectations(Clock())
    expectations.pod_created(JOB, pod("a"))
    assert tasks(expectations.pods(JOB, [])) == ["a"]
    assert not expectations.satisfied(JOB)
    assert tasks(expectations.pods(JOB, [pod("a")])) == ["a"]
    assert tasks(expectations.pods(JOB, [])) == [], "the cache showed it, so it is the cache that tells of its end"
    assert expectations.satisfied(JOB)


def test_created_pods_that_never_show_are_forgotten() -> None:
    """A pod that came and went unseen does not count for ever."""
    clock = Clock()
    expectations = Expectations(clock)
    expectations.pod_created(JOB, pod("a"))
    clock.now += 30.0
    assert expectations.pods(JOB, []) == []


def test_an_event_ends_what_was_noted() -> None:
    """Created and deleted before this process looked again: gone."""
    expectations = Expectations(Clock())
    expectations.pod_created(JOB, pod("a"))
    expectations.pod_seen(pod("a"), None)
    assert expectations.pods(JOB, []) == []


def test_a_pod_elsewhere_tells_nothing() -> None:
    """Whatever it says of its owner, a pod of another namespace does not end what was noted here."""
    expectations = Expectations(Clock())
    expectations.pod_created(JOB, pod("a"))
    expectations.pod_seen(None, pod("a", "forged", "other"))
    assert tasks(expectations.pods(JOB, [])) == ["a"]


def test_deleted_pods_are_on_their_way_out() -> None:
    """The cached pod is left as it is; its successor of the same name is not affected."""
    expectations = Expectations(Clock())
    cached = pod("a")
    expectations.deleted("a")
    assert expectations.pods(JOB, [cached])[0].metadata.deletion_timestamp
    assert cached.metadata.deletion_timestamp is None
    assert expectations.pods(JOB, [pod("a", uid="new")])[0].metadata.deletion_timestamp is None


def group(uid: str, version: str) -> PodGroup:
    """PodGroup `n/g`."""
    return pod_group("g", 1, "n", uid=uid, version=version)


def test_groups() -> None:
    """A deleted group does not exist, its successor does, whatever the cache shows."""
    expectations = Expectations(Clock())
    old, new = group("old", "1"), group("new", "3")
    assert expectations.group("n/g", old) == old
    expectations.deleted("old")
    assert expectations.group("n/g", old) is None
    expectations.groups.note(new)
    assert expectations.group("n/g", old) == new
    expectations.groups.seen(old, None)
    assert expectations.group("n/g", None) == new
    expectations.groups.seen(None, new)
    assert expectations.group("n/g", None) is None
    assert expectations.group("n/g", new) == new


def test_a_group_that_is_being_deleted_is_gone() -> None:
    """Whoever deleted it: the Job needs another one."""
    expectations, old = Expectations(Clock()), group("old", "1")
    meta = structs.replace(old.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    assert expectations.group("n/g", structs.replace(old, metadata=meta)) is None


def test_a_group_that_never_shows_is_forgotten() -> None:
    """It came and went between two lists: its Job is looked at again when it counts no more."""
    clock = Clock()
    expectations = Expectations(clock)
    expectations.groups.note(group("new", "3"))
    assert not expectations.satisfied(JOB, "n/g")
    clock.now += 30.0
    assert expectations.satisfied(JOB, "n/g")
    assert expectations.group("n/g", None) is None


def job(version: str, uid: str = "u") -> Job:
    """Job `n/j`."""
    return a_job("j", namespace="n", uid=uid, version=version)


def test_the_newer_job_counts() -> None:
    """Ours while the cache is behind, the cache's when it is ahead or shows another Job."""
    jobs = OwnWrites[Job](Clock())
    for cached in (job("11"), job("11", "another")):
        jobs.note(job("10"))
        assert jobs.newest("n/j", job("9")) == job("10")
        assert jobs.newest("n/j", cached) == cached
    jobs.note(job("10"))
    jobs.seen(job("9"), job("10"))
    assert jobs.newest("n/j", job("9")) == job("9")
    jobs.note(job("10"))
    assert jobs.newest("n/j", None) is None, "it was changed, not created, so what no cache shows is gone"


def test_a_job_that_is_gone() -> None:
    """It is not kept; one of the same name that came after it is."""
    jobs = OwnWrites[Job](Clock())
    jobs.note(job("10"))
    jobs.seen(job("9", "earlier"), None)
    assert jobs.newest("n/j", job("9")) == job("10")
    jobs.seen(job("9"), None)
    assert jobs.newest("n/j", job("9")) == job("9")


def test_jobs_of_one_name_are_told_apart() -> None:
    """In two namespaces, and one after the other in the same: what was made for one is no pod of another."""
    expectations = Expectations(Clock())
    elsewhere, later = JobRef("m/j", "v"), JobRef("n/j", "w")
    expectations.pod_created(JOB, pod("a"))
    expectations.pod_created(elsewhere, pod("b", namespace="m"))
    assert [tasks(expectations.pods(each, [])) for each in (JOB, elsewhere, later)] == [["a"], ["b"], []]
    assert [expectations.satisfied(each) for each in (JOB, elsewhere, later)] == [False, False, True]
    expectations.pod_seen(None, pod("a"))
    assert [expectations.satisfied(each) for each in (JOB, elsewhere)] == [True, False]
    expectations.deleted("a")
    assert expectations.pods(elsewhere, [pod("b", namespace="m")])[0].metadata.deletion_timestamp is None


def test_deletions_are_forgotten_after_some_minutes() -> None:
    """Each later one makes two of them be forgotten, the oldest first."""
    clock = Clock()
    expectations = Expectations(clock)
    for number in range(4):
        expectations.deleted(f"old-{number}")
    clock.now += 299.9
    expectations.deleted("old-0", ours=False)
    assert expectations.deletion("old-1") is not None
    clock.now += 0.1
    assert expectations.deletion("old-1") is None
    expectations.deleted("new")
    assert [*expectations._deleted] == ["old-3", "old-0", "new"]
    deletion = expectations.deletion("old-0")
    assert deletion is not None
    assert not deletion.ours

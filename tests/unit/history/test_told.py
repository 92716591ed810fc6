"""Events in the history of a job whose user changed it, that was displaced, or that failed."""

from typing import Any

import pytest
from recorded_lives import BOB, EVE, Lives, T, entered, group, job, placement, pod, waits

from history import read
from history.hourly import OF_GANG
from history.model import EVERYTHING, MEMORY, Scope, What
from history.store import HistoryStore

PLAIN = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "plain-uid", "controller": True}


def story(w: Lives, scope: Scope = EVERYTHING) -> list[tuple[str, str]]:
    """Events of the job in the store after all observations."""
    store = HistoryStore.for_writing(MEMORY)
    store.write(entered(w.looks).take_changes(), {})
    return [(each.what, each.text) for each in read.events_of_gang(store, scope, "team", "train")]


def plain(phase: str = "Pending", *conditions: dict[str, Any], ending: str = "", **spec: Any) -> dict[str, Any]:
    """The PodGroup of a Job of Kubernetes."""
    made = group(phase, *conditions)
    made["metadata"]["ownerReferences"] = [PLAIN]
    made["spec"] |= spec
    made["status"]["ending"] = ending
    return made


def test_changes_by_users_are_events() -> None:
    """Each once, with the values before and after."""
    w = Lives()
    w.look("podgroups", EVE.group, 0.2, plain())
    moved = plain(queue="product")
    moved["metadata"]["annotations"]["muster.dev/changed-by"] = "bob"
    w.look("podgroups", EVE.group, 1.0, moved)
    w.look("podgroups", EVE.group, 2.0, plain(queue="product", minMember=4))
    w.look("podgroups", EVE.group, 3.0, plain(queue="product", minMember=4, priorityClassName="high"))
    w.look("podgroups", EVE.group, 4.0, plain(queue="product", minMember=4, priorityClassName="high"))
    w.look("podgroups", EVE.group, 5.0, plain())
    assert story(w) == [
        ("submitted", "to queue research"),
        ("moved", "from queue research to product, by bob"),
        ("resized", "members that start together: from 1 to 4"),
        ("priority", "from class none to high"),
        ("moved", "from queue product to research"),
        ("resized", "members that start together: from 4 to 1"),
        ("priority", "from class high to none"),
    ]


def test_a_class_with_a_long_name_is_changed_once() -> None:
    """The store keeps the beginning of its name, and each later observation has the whole name."""
    w, name = Lives(), "c" * 300
    for seconds, given in ((0.2, ""), (1.0, name), (2.0, name)):
        w.look("podgroups", EVE.group, seconds, plain(priorityClassName=given))
    events = entered(w.looks).changes.gang_events
    assert [each.what for each in events] == [What.SUBMITTED, What.PRIORITY]


def test_a_held_job_is_not_deleted() -> None:
    """Its PodGroup goes, as its owner wants no pods; once released it has another, and is still the same job.

    The changes between both PodGroups, of a Job that was resized or a StatefulSet with another class, are events.
    """
    w, held, later = Lives(), waits("Suspended", "its workload wants no pods", 9), plain()
    later["metadata"]["creationTimestamp"] = EVE.at(20)
    later["spec"] |= {"minMember": 3, "priorityClassName": "high"}
    w.look("podgroups", EVE.group, 0.2, plain())
    w.look("placements", "placement", 1.0, placement(1, started=1))
    w.look("podgroups", EVE.group, 9.0, plain("Running", held))
    w.look("podgroups", EVE.group, 9.1, {}, gone=True)
    w.look("podgroups", "later", 20.0, later)
    events = story(w)
    assert [what for what, _ in events[:4]] == ["submitted", "planned", "started", "suspended"]
    assert events[4:] == [
        ("submitted", "to queue research with class high; 3 members start together"),
        ("resized", "members that start together: from 1 to 3"),
        ("priority", "from class none to high"),
    ]
    store = HistoryStore.for_writing(MEMORY)
    for looks, state in ((w.looks[:-1], "Suspended"), (w.looks[-1:], "Waiting")):
        store.write(entered(looks).take_changes(), {})
        [gang] = read.gangs(store, EVERYTHING)
        assert (gang.state, round(gang.submitted - T), gang.started) == (state, 0, T + 1.0)


@pytest.mark.parametrize(("deleted", "what"), [(0, "member failed"), (8, "member deleted"), (20, "member failed")])
def test_a_deleted_pod_has_not_failed(deleted: int, what: str) -> None:
    """Its containers ended with a code after the deletion; not so if they had failed before."""
    w, ended = Lives(), pod(5.0, "Failed", ended=9)
    if deleted:
        ended["metadata"]["deletionTimestamp"] = EVE.at(deleted + 30)
        ended["metadata"]["deletionGracePeriodSeconds"] = 30
    w.look("podgroups", EVE.group, 0.2, plain())
    w.look("pods", EVE.pod, 5.0, pod(5.0))
    w.look("pods", EVE.pod, 9.0, ended)
    w.look("podgroups", EVE.group, 9.5, plain("Completed", ending="as its owner says"))
    events = story(w)
    assert [each for each, _ in events] == ["submitted", what, "ended"]
    why = {"member failed": "container main: exit code 1", "member deleted": "its pod was deleted"}[what]
    assert events[1][1].endswith(why)
    assert events[2][1] == f"failed: train-worker-0 on node-1: {why}; as its owner says"


@pytest.mark.parametrize("what", [What.EVICTED_MEMBER, What.DELETED_MEMBER])
def test_members_that_end_together_are_one_event(what: What) -> None:
    """They do not use up the events of the hour; the members of the next placement are another event."""
    w, evicted = Lives(), what is What.EVICTED_MEMBER
    w.look("podgroups", EVE.group, 0.2, plain())
    for epoch, begin in ((1, 5.0), (2, 50.0)):
        for number in range(OF_GANG):
            uid, member = f"{epoch}-{number}", f"train-worker-{number}"
            w.look("pods", uid, begin, pod(begin, name=member, epoch=epoch, evicted=evicted))
            w.look("pods", uid, begin + 4, {}, gone=True)
    events = entered(w.looks).changes.gang_events
    assert [(each.what, each.epoch) for each in events] == [(What.SUBMITTED, 0), (what, 1), (what, 2)]


def test_a_failure_replaces_an_end_without_pods() -> None:
    """Until its owner reports a failure, nothing distinguishes it from a completed one."""
    w = Lives()
    w.look("podgroups", EVE.group, 0.2, plain())
    w.look("podgroups", EVE.group, 9.0, plain("Completed"))
    w.look("podgroups", EVE.group, 9.5, plain("Completed", ending="as its owner says"))
    assert [text for what, text in story(w) if what == "ended"] == ["failed: as its owner says"]


def test_the_end_of_a_volcano_job_has_the_first_failure() -> None:
    """Beside its own message."""
    w = Lives()
    w.look("podgroups", EVE.group, 0.2, group())
    w.look("pods", EVE.pod, 5.0, pod(5.0))
    w.look("pods", EVE.pod, 9.0, pod(5.0, "Failed", ended=9))
    w.look("jobs", EVE.owner, 9.5, job("Failed", 9))
    why = "train-worker-0 on node-1: container main: exit code 1"
    assert story(w)[-1] == ("ended", f"failed: {why}; as it says")


@pytest.mark.parametrize(("scope", "who"), [
    (EVERYTHING, "Job train in namespace other"),
    (Scope(frozenset({"team", "other"})), "Job train in namespace other"),
    (Scope(frozenset({"team"})), "a job of another namespace"),
    (Scope(frozenset({"team", "other"}), frozenset({("other", (T + 60) * 1000)})), "a job of another namespace"),
])  # fmt: skip
def test_a_displacing_job_is_named_to_those_who_may_see_it(scope: Scope, who: str) -> None:
    """That is, who may see its namespace, and not only a later one of the same name."""
    by = who if who.startswith("Job") else "a gang"
    w, asks = Lives(), placement(1, "Planned", whose=BOB)
    asks["spec"]["victims"] = [{"name": "train-worker-0", "namespace": "team", "gang": "gang"}]
    w.look("podgroups", EVE.group, 0.2, group())
    w.look("podgroups", BOB.group, 10.0, group(whose=BOB), BOB)
    w.look("placements", "b-placement", 11.0, asks, BOB)
    w.look("podgroups", EVE.group, 12.0, group("Pending", waits("Evicted", "preempted by a gang", 12)))
    asks["status"]["message"] = "seen again"
    w.look("placements", "b-placement", 13.0, asks, BOB)
    assert story(w, scope)[1:] == [("makes room", f"for {who}"), ("evicted", f"preempted by {by}")]
    known = [each.what for each in entered(w.looks).changes.gang_events if each.run == EVE.group]
    assert known.count(What.MAKES_ROOM) == 1  # it counts against the limit of events of the displaced gang


def test_waiting_after_an_eviction_is_not_running() -> None:
    """Times of several members count once."""
    w = Lives()
    w.look("podgroups", EVE.group, 0.2, group())
    for uid, begin, end in (("one", 5.0, 10), ("two", 7.0, 12), ("again", 40.0, 50)):
        w.look("pods", uid, begin, pod(begin, name=uid))
        w.look("pods", uid, float(end), pod(begin, "Succeeded", name=uid, ended=end))
    store = HistoryStore.for_writing(MEMORY)
    store.write(entered(w.looks).take_changes(), {read.SEEN: str(round((T + 50) * 1000))})
    [gang] = read.gangs(store, EVERYTHING)
    assert gang.ran_s == pytest.approx(12 - 5 + 50 - 40, abs=2.0)
    assert gang.ran() == "17s"
    assert gang.waited_s == pytest.approx(50 - 17, abs=2.0)


def test_the_first_failure_is_the_earliest_of_the_lowest_rank() -> None:
    """In whatever order the failures are seen, as `muster explain` names it."""
    w = Lives()
    w.look("podgroups", EVE.group, 0.2, group())
    names = ["train-worker-10", "train-worker-3", "train-worker-2", "train-worker-1"]
    for name in names:
        w.look("pods", name, 5.0, pod(5.0, name=name))
    for number, (name, ended) in enumerate(zip(names, (9, 9, 9, 10), strict=True)):
        w.look("pods", name, 10.0 + number / 10, pod(5.0, "Failed", name, ended=ended))
    w.look("jobs", EVE.owner, 11.5, job("Failed", 11))
    assert story(w)[-1][1].startswith("failed: train-worker-2 on node-1: container main: exit code 1")

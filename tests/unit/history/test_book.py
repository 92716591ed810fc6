"""The book: what looks at objects tell, each thing once, in whatever order and however often they come."""

import random
from typing import Any

import pytest
from msgspec import convert, structs

from history import read
from history.book import Book
from history.groups import RecordedJob
from history.looks import Look, apply
from history.model import MEMORY
from history.pods import Moment, RecordedPod
from history.scope import EVERYTHING
from history.store import Store
from history.usage import usage
from muster.api.kubernetes.meta import Object, format_time
from muster.api.muster.placement import Placement
from muster.api.volcano.scheduling import PodGroup

GPU = "nvidia.com/gpu"
T = 1_800_000_000
JOB, GROUP, POD = "job-uid", "group-uid", "pod-uid"
TYPES: dict[str, type[Object]] = {
    "jobs": RecordedJob, "podgroups": PodGroup, "placements": Placement, "pods": RecordedPod
}  # fmt: skip


def at(second: float) -> str:
    """The text of a time, which counts from the submission."""
    return format_time(T + second)


class World:
    """Objects as they change, and the looks that a recorder takes of them."""

    def __init__(self) -> None:
        self.looks: list[Look] = []
        self._version = 100

    def look(self, kind: str, uid: str, second: float, content: dict[str, Any], *, gone: bool = False) -> None:
        """The next change."""
        self._version += 1
        meta = {"uid": uid, "namespace": "team", "resourceVersion": str(self._version), "creationTimestamp": at(0)}
        content = {**content, "metadata": {"name": uid, **meta, **content.get("metadata", {})}}
        new = convert(content, TYPES[kind])
        moment = Moment(round((T + second) * 1000), live=True)
        self.looks.append(Look(kind, uid, None if gone else new, gone, moment))


def pod(second: float, phase: str = "Running", name: str = POD, epoch: int = 1, **more: Any) -> dict[str, Any]:
    """A member with a GPU that was bound at a time."""
    conditions = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": at(int(second))}]
    state: dict[str, Any] = {"running": {"startedAt": at(int(second) + 1)}}
    if phase in {"Succeeded", "Failed"}:
        ended = at(int(more.pop("ended")))
        code = int(phase == "Failed")
        state = {"terminated": {"exitCode": code, "startedAt": at(int(second) + 1), "finishedAt": ended}}
    if more.pop("evicted", False):
        conditions.append({"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"})
    return {
        "metadata": {
            "name": name,
            "labels": {"muster.dev/gang": "gang"},
            "annotations": {"muster.dev/epoch": str(epoch), **more.pop("annotations", {})},
        },
        "spec": {
            "nodeName": "node-1",
            "schedulerName": "muster",
            "containers": [{"name": "main", "resources": {"requests": {GPU: "1"}}}],
        },
        "status": {"phase": phase, "conditions": conditions, "containerStatuses": [{"name": "main", "state": state}]},
    }


def group(phase: str = "Pending", *conditions: dict[str, Any]) -> dict[str, Any]:
    """The PodGroup of a Volcano Job."""
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "train", "uid": JOB, "controller": True}
    return {
        "metadata": {"name": "gang", "ownerReferences": [owner], "annotations": {"muster.dev/created-by": "eve"}},
        "spec": {"minMember": 1, "queue": "research", "minResources": {GPU: "1", "requests.nvidia.com/gpu": "1"}},
        "status": {"phase": phase, "conditions": list(conditions)},
    }


def waits(reason: str, message: str, second: float) -> dict[str, Any]:
    """The condition of a gang that waits."""
    told = {"reason": reason, "message": message, "lastTransitionTime": at(second)}
    return {"type": "Unschedulable", "status": "True", **told}


def placement(epoch: int, phase: str = "Bound", started: float | None = None) -> dict[str, Any]:
    """A placement of one member."""
    runs = [{"name": "worker", "runs": [{"node": f"node-{epoch}"}]}]
    status: dict[str, Any] = {"phase": phase}
    if started is not None:
        status |= {"started": True, "startedAt": at(started)}
    return {
        "metadata": {"name": "gang"},
        "spec": {"podGroupUID": GROUP, "epoch": epoch, "podSets": runs},
        "status": status,
    }


def job(phase: str, second: float, retries: int = 0) -> dict[str, Any]:
    """A Volcano Job."""
    state = {"phase": phase, "lastTransitionTime": at(second), "message": "as it says"}
    return {"metadata": {"name": "train"}, "status": {"state": state, "retryCount": retries}}


def life() -> list[Look]:
    """A gang that waits, starts, is evicted, starts again and completes."""
    w = World()
    w.look("jobs", JOB, 0.1, job("Pending", 0))
    w.look("podgroups", GROUP, 0.2, group())
    w.look("podgroups", GROUP, 1.2, group("Pending", waits("NoRoom", "no room for 1 pod", 1)))
    w.look("placements", "placement", 5.0, placement(1, "Planned"))
    w.look("pods", POD, 5.4, pod(5.4))
    w.look("placements", "placement", 5.5, placement(1, started=6))
    w.look("podgroups", GROUP, 5.6, group("Running"))
    w.look("pods", POD, 9.0, pod(5.4, annotations={"muster.dev/checkpoint": f"at={at(8)}"}))
    w.look("pods", POD, 15.2, pod(5.4, evicted=True))
    w.look("podgroups", GROUP, 15.3, group("Pending", waits("Evicted", "for gang big of queue product", 15)))
    w.look("jobs", JOB, 15.3, job("Restarting", 15, retries=1))
    w.look("pods", POD, 15.4, {}, gone=True)
    w.look("placements", "placement", 20.0, placement(2, "Planned"))
    w.look("pods", "pod-2", 20.2, pod(20.2, name="pod-2", epoch=2))
    w.look("placements", "placement", 20.3, placement(2, started=21))
    w.look("jobs", JOB, 20.4, job("Running", 20, retries=1))
    w.look("pods", "pod-2", 30.5, pod(20.2, "Succeeded", name="pod-2", epoch=2, ended=30.5))
    w.look("jobs", JOB, 30.6, job("Completed", 30, retries=1))
    w.look("podgroups", GROUP, 30.7, {}, gone=True)
    w.look("jobs", JOB, 40.0, {}, gone=True)
    return w.looks


STORY = [
    ("submitted", 0), ("waits", 0), ("planned", 1), ("started", 1), ("evicted", 1), ("restarted", 0),
    ("member evicted", 1), ("planned", 2), ("started", 2), ("ended", 0),
]  # fmt: skip


def recorded(store: Store) -> tuple[read.Gang, list[tuple[str, int]]]:
    """The only gang, and what happened to it."""
    (gang,) = read.gangs(store, EVERYTHING)
    return gang, [(each.what, each.epoch) for each in read.story(store, EVERYTHING, "team", "train")]


def check(store: Store) -> None:
    """What must stand in the store after the whole life."""
    gang, story = recorded(store)
    assert story == STORY
    assert (gang.name, gang.kind, gang.queue, gang.user) == ("train", "Job", "research", "eve")
    assert (gang.state, gang.evictions, gang.restarts) == ("Completed", 1, 1)
    (row,) = usage(store, EVERYTHING, (), since=T - 10.0, now=T + 100.0)
    assert row.resources[GPU].held == pytest.approx(15.4 - 5.4 + 30.5 - 20.2)
    assert row.resources[GPU].asked == pytest.approx(30.7 - 0.2)
    assert row.resources[GPU].lost == pytest.approx(15.4 - 8.0)
    assert row.resources[GPU].used == pytest.approx(15.4 - 6.0 + 30.5 - 21.0, abs=1.0)


def test_a_life_is_told_in_order() -> None:
    """Each thing stands once, at its time, and usage follows from it."""
    book, store = Book(), Store.for_writing(MEMORY)
    for look in life():
        apply(book, look)
    store.write(book.take(), {})
    check(store)
    assert not {*book.gangs, *book.runs, *book.holdings}


@pytest.mark.parametrize("seed", range(30))
def test_a_kill_at_any_look_changes_nothing(seed: int) -> None:
    """Killed at random looks, written or not, and read again from there, the store is the same in the end."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    store, looks = Store.for_writing(MEMORY), life()
    book, written, position = Book(), 0, 0
    while position < len(looks):
        apply(book, looks[position])
        position += 1
        if chance.random() < 0.4:
            store.write(book.take(), {})
            written = position
        if chance.random() < 0.2:
            book = Book()
            book.reopen(*store.open_rows(), store.ended_pods(10))
            position = written
    store.write(book.take(), {})
    check(store)


@pytest.mark.parametrize("seed", range(20))
def test_looks_that_come_twice_tell_nothing_new(seed: int) -> None:
    """A list beside the watch shows objects as they were before: older versions are no news."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    store, book, looks = Store.for_writing(MEMORY), Book(), life()
    for number, look in enumerate(looks):
        apply(book, look)
        earlier = chance.choice(looks[: number + 1])
        if not earlier.gone:
            apply(book, earlier)
        store.write(book.take(), {})
    check(store)


def test_what_ended_unseen_has_a_bound() -> None:
    """A member that was there before a pause and is not there after it ended in its middle, give or take half of it."""
    book = Book()
    for look in life()[:5]:
        apply(book, look)
    assert book.unseen([POD], (T + 10) * 1000, (T + 30) * 1000) == 1
    (holding,) = book.take().holdings.values()
    assert (holding.ended, holding.reason, holding.within) == ((T + 20) * 1000, "unseen", 10_000)


@pytest.mark.parametrize("ended", [True, False])
def test_members_that_have_ended_are_told_of_once(*, ended: bool) -> None:
    """After a kill, pods that are still there though they have ended tell nothing, whether their run is open or not."""
    w, book, store = World(), Book(), Store.for_writing(MEMORY)
    failed = pod(5.0, "Failed", ended=9)
    w.look("podgroups", GROUP, 0.2, group())
    w.look("pods", POD, 5.0, pod(5.0))
    w.look("pods", POD, 9.0, failed)
    w.look("podgroups", GROUP, 9.5, group("Completed" if ended else "Running"))
    for look in w.looks:
        apply(book, look)
    store.write(book.take(), {})
    book, known = Book(), len(w.looks)
    book.reopen(*store.open_rows(), store.ended_pods(10))
    w.look("pods", POD, 20.0, failed)
    w.look("pods", POD, 21.0, failed)
    for look in (w.looks[known]._replace(moment=Moment((T + 20) * 1000, live=False)), w.looks[-1]):
        apply(book, look)
    assert not book.take()


def test_a_finished_pod_of_an_unknown_group_is_no_gang() -> None:
    """A pod that has ended, and whose PodGroup nobody has seen or recorded any more, opens nothing."""
    w, book = World(), Book()
    w.look("pods", POD, 9.0, pod(5.0, "Failed", ended=9))
    apply(book, w.looks[0])
    assert not book.take()


def test_a_pod_without_a_group_is_a_gang_of_its_own() -> None:
    """A pod of a queue whose PodGroup nobody has seen is recorded by its owner or itself, and ends with it."""
    w, book, store = World(), Book(), Store.for_writing(MEMORY)
    alone = pod(5.0)
    alone["metadata"]["labels"] = {"muster.dev/queue": "research"}
    w.look("pods", POD, 5.0, alone)
    w.look("pods", POD, 9.0, {}, gone=True)
    for look in w.looks:
        apply(book, look)
    store.write(book.take(), {})
    (gang,) = read.gangs(store, EVERYTHING)
    assert (gang.kind, gang.name, gang.queue, gang.state) == ("Pod", POD, "research", "Deleted")
    assert gang.gpu_seconds == pytest.approx(4.0)
    assert not book.runs


def test_pods_of_others_are_nobodys() -> None:
    """A pod of another scheduler without a queue is not recorded."""
    w, book = World(), Book()
    other = pod(5.0)
    other["metadata"]["labels"], other["spec"]["schedulerName"] = {}, "default-scheduler"
    w.look("pods", POD, 5.0, other)
    apply(book, w.looks[0])
    assert not book.take()


def test_a_tenant_cannot_fill_the_store() -> None:
    """A gang that waits for ever new reasons has a bounded story, and its sentences are bounded, too."""
    w, book = World(), Book()
    w.look("podgroups", GROUP, 0.2, group())
    for number in range(2_500):
        w.look("podgroups", GROUP, 1.0, group("Pending", waits(f"Reason{number}", "x" * 5_000, 1)))
    for look in w.looks:
        apply(book, look)
    found = book.take().happenings
    assert len(found) == 2_000
    assert max(len(each.text) for each in found) == 1_000


def test_quantities_that_cannot_be_read_count_as_a_pod() -> None:
    """One pod with nonsense is recorded as a pod that asks for nothing else."""
    w, book = World(), Book()
    w.look("podgroups", GROUP, 0.2, group())
    odd = pod(5.0)
    odd["spec"]["containers"][0]["resources"]["requests"][GPU] = "many"
    w.look("pods", POD, 5.0, odd)
    for look in w.looks:
        apply(book, look)
    assert [each.amounts for each in book.take().holdings.values()] == [{"pods": 1}]


def test_texts_of_tenants_fit_into_every_store() -> None:
    """Names without end and characters that PostgreSQL refuses are cut, and everything else of the gang is recorded."""
    w, book = World(), Book()
    odd = group("Pending", waits("Odd\0reason" + "x" * 500, "a\0b", 1))
    odd["spec"] |= {"queue": "q\0" + "x" * 1_000, "minResources": {"y" * 1_000: "1", "a\0": "1", GPU: "2"}}
    odd["metadata"]["annotations"]["muster.dev/created-by"] = "e\0ve" * 1_000
    odd["metadata"]["ownerReferences"][0] |= {"uid": "u\0" * 500, "name": "n\0" * 500}
    w.look("podgroups", GROUP, 0.2, odd)
    apply(book, w.looks[0])
    changes = book.take()
    (gang,), (run,) = changes.gangs.values(), changes.runs.values()
    assert run.asked == {GPU: 2000}
    texts = [*map(str, structs.astuple(gang)), *(each.text + each.subject for each in changes.happenings)]
    assert not any("\0" in text for text in texts)
    assert (len(gang.id) <= 512, len(gang.queue), len(gang.user), len(gang.owner)) == (True, 253, 512, 63)
    Store.for_writing(MEMORY).write(changes, {})

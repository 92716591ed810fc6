"""Charges: a member's time is its queue's at each moment, whatever goes, moves or claims an owner later."""

from typing import Any

import pytest
from recorded_lives import BOB, EVE, GPU, Lives, T, Whose, entered, group, job, placement, pod
from recorder_world import Cluster, at_once, record
from sqlalchemy import text

from history import read
from history.model import DAY_MS, EVERYTHING, MEMORY, MOVES_KEPT, MS, Scope
from history.observations import WAIT_S, ObservationFeed
from history.publish import held
from history.retain import tidy
from history.spares import CHANGES_KEPT
from history.store import HistoryStore
from history.usage import usage

Charged = dict[str, float]


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No waits."""
    at_once(monkeypatch)


def charged(w: Lives, *, until: float) -> Charged:
    """GPU seconds by queue, as published; the store says the same, of folded days, too."""
    cluster, store = Cluster(w.looks), HistoryStore.for_writing(MEMORY)
    recorder = record(cluster, store, len(cluster.looks))
    assert recorder.tallies is not None
    now_ms = round((T + until) * MS)
    again = record(cluster, store)
    assert again.tallies is not None
    documents = [each.tallies.document(now_ms, held(each))["queues"] for each in (recorder, again) if each.tallies]
    assert documents[0] == documents[1]
    found = {queue: float(each["seconds"][GPU]) for queue, each in documents[0].items()}
    assert stored(store, T + until) == pytest.approx(found)
    for queue, seconds in found.items():
        assert stored(store, T + until, queue=queue) == pytest.approx({queue: seconds})
    if not [*held(recorder)]:
        tidy(store, (T + 10) * MS + 3 * DAY_MS, keep_days=1, keep_usage_days=100, megabytes=1000)
        assert stored(store, T + until + 10 * DAY_MS / MS) == pytest.approx(found)
    return found


def stored(store: HistoryStore, now: float, queue: str | None = None) -> Charged:
    """GPU seconds by queue in the store."""
    rows = usage(store, EVERYTHING, ("queue",), since=(T * MS - DAY_MS) / MS, now=now, queue=queue)
    return {row.key[0]: row.resources[GPU].held for row in rows if row.resources[GPU].held}


def started(whose: Whose = EVE) -> Lives:
    """A gang of one member with a GPU from second 5 on."""
    w = Lives()
    w.look("jobs", whose.owner, 0.1, job("Pending", 0, whose=whose), whose)
    w.look("podgroups", whose.group, 0.2, group("Running", whose=whose), whose)
    w.look("pods", whose.pod, 5.0, pod(5.0, whose=whose), whose)
    return w


def moved(queue: str) -> dict[str, Any]:
    """The PodGroup in another queue."""
    return group("Running", whose=EVE._replace(queue=queue))


def test_a_deleted_job_is_charged_to_its_queue() -> None:
    """Its pods end after it and its PodGroup have gone, as they do when the garbage collector deletes them."""
    w = started()
    w.look("jobs", EVE.owner, 8.0, {}, gone=True)
    w.look("podgroups", EVE.group, 8.1, {}, gone=True)
    w.look("pods", EVE.pod, 15.0, {}, gone=True)
    assert charged(w, until=20) == pytest.approx({"research": 10}, abs=0.01)


@pytest.mark.parametrize("ends", [True, False])
def test_a_gang_that_moves_is_charged_to_each_queue_for_its_time(*, ends: bool) -> None:
    """Whether it has ended or not; so is what it asks for."""
    w = started()
    for second, queue in ((8.0, "product"), (9.0, "small"), (11.0, "research")):
        w.look("podgroups", EVE.group, second, moved(queue))
    if ends:
        w.look("pods", EVE.pod, 15.0, {}, gone=True)
        w.look("podgroups", EVE.group, 15.0, {}, gone=True)
        w.look("jobs", EVE.owner, 15.1, {}, gone=True)
    assert charged(w, until=15) == pytest.approx({"research": 3 + 4, "product": 1, "small": 2}, abs=0.01)
    store = HistoryStore.for_writing(MEMORY)
    store.write(entered(w.looks).take_changes(), {})
    asked = {
        row.key[0]: row.resources[GPU].asked for row in usage(store, EVERYTHING, ("queue",), since=T - 9, now=T + 15)
    }
    assert asked == pytest.approx({"research": 7.8 + 4, "product": 1, "small": 2}, abs=0.01)


def keeps(*seats: int, epoch: int = 1) -> dict[str, Any]:
    """A placement that keeps so many spare slots on each of some nodes."""
    found = placement(epoch)
    spares = [{"podSet": "pods", "node": f"s-{number}", "count": count} for number, count in enumerate(seats)]
    none_runs = [{"podSet": "none-runs", "node": "s-0", "count": 1}] if seats else []
    return {**found, "spec": {**found["spec"], "spares": none_runs + spares}}


@pytest.mark.parametrize(("before", "after"), [((), (2, 1)), ((3,), (1,)), ((3,), ())])
def test_spare_slots_that_change_while_none_records_count_from_the_restart(
    before: tuple[int, ...], after: tuple[int, ...]
) -> None:
    """The placement is read before the pods that define the amounts of a slot."""
    w = started()
    w.look("placements", "p", 6.0, keeps(*before))
    w.look("placements", "p", 10.0, keeps(*after))
    cluster, store = Cluster(w.looks), HistoryStore.for_writing(MEMORY)
    for happens in (len(w.looks) - 1, 1):
        cluster.happens(happens)
        recorder = record(cluster, store)
    found = [each.amounts[GPU] for each in recorder.entries.holdings.values() if not each.node]
    assert found == ([sum(after) * 1000] if after else [])


@pytest.mark.parametrize("last", ["member", "group"])
def test_spare_slots_are_charged_to_the_queue_while_a_member_runs(last: str) -> None:
    """Each with what a member has; they move with their gang, and an older placement gives nothing back."""
    w = started()
    w.look("placements", "p", 3.0, keeps(2, 1))
    w.look("placements", "p", 7.0, keeps(2, epoch=2))
    w.look("placements", "p", 8.0, keeps(9))
    w.look("podgroups", EVE.group, 9.0, moved("product"))
    if last == "member":
        w.look("pods", EVE.pod, 11.0, {}, gone=True)
    else:
        w.look("podgroups", EVE.group, 11.0, {}, gone=True)
        w.look("pods", EVE.pod, 13.0, {}, gone=True)
    later = 2 if last == "group" else 0
    assert charged(w, until=15) == pytest.approx({"research": 2 * 4 + 2 * 3, "product": 2 * 3 + later}, abs=0.01)
    entries = entered(w.looks)
    assert not entries.holdings.keys() | entries.spares.keys() | entries.bound.keys()


def test_the_spare_slots_of_a_gang_are_few_rows() -> None:
    """Beyond that the most of them counts: a tenant's flips fill no store. They are no nodes, and lose no work."""
    w = started()
    for number in range(2 * CHANGES_KEPT):
        w.look("placements", "p", 10.0 + number * 0.01, keeps(1 + number % 2))
    entries = entered(w.looks)
    assert len(entries.changes.holdings) == CHANGES_KEPT + 1
    assert [each.amounts[GPU] for each in entries.holdings.values() if not each.node] == [2000]
    store = HistoryStore.for_writing(MEMORY)
    store.write(entries.take_changes(), {})
    (gang,) = read.gangs(store, EVERYTHING)
    assert gang.nodes == ("node-1",)


def test_the_moves_of_a_gang_are_bounded() -> None:
    """Beyond that the shortest stay is charged to the next queue: a tenant's flips fill no store."""
    w = started()
    for number in range(2 * MOVES_KEPT):
        w.look("podgroups", EVE.group, 10.0 + number * 0.01, moved(f"flip-{number % 2}"))
    entries = entered(w.looks)
    (holding,) = entries.holdings.values()
    assert len(holding.moves) == MOVES_KEPT
    assert holding.moves[0] == ((T + 10) * MS, "research")


def test_a_gang_without_a_queue_is_in_the_default_one() -> None:
    """No usage is published for a queue without a name, not from rows of earlier versions either."""
    w = Lives()
    unnamed = EVE._replace(queue="")
    w.look("podgroups", EVE.group, 0.2, group("Running", whose=unnamed))
    w.look("pods", EVE.pod, 5.0, pod(5.0))
    assert charged(w, until=15) == pytest.approx({"default": 10}, abs=0.01)


def test_a_pod_is_charged_no_more_than_its_node_offers() -> None:
    """Others than kube-scheduler bind, too."""
    w = started(huge := EVE._replace(asks=((GPU, "100000000"), ("cpu", "2"))))
    cluster = Cluster(w.looks)
    cluster.nodes = {"node-1": {GPU: 8000, "pods": 110}}
    (holding,) = record(cluster, HistoryStore.for_writing(MEMORY), len(w.looks)).entries.holdings.values()
    assert (holding.pod, holding.amounts) == (huge.pod, {GPU: 8000, "pods": 1})


def test_a_pod_is_charged_for_what_its_new_node_registers_before_it_starts() -> None:
    """The device plugin of a new node may come after the binding."""
    w, waiting = Lives(), pod(5.0, "Pending")
    waiting["status"]["containerStatuses"] = []
    w.look("podgroups", EVE.group, 0.2, group("Running"))
    w.look("pods", EVE.pod, 5.0, waiting)
    w.look("pods", EVE.pod, 7.0, pod(5.0))
    cluster, store = Cluster(w.looks), HistoryStore.for_writing(MEMORY)
    for until, gpus in ((2, 0), (3, 8000)):
        cluster.nodes = {"node-1": {GPU: gpus, "pods": 110}}
        (holding,) = record(cluster, store, until).entries.holdings.values()
        assert holding.amounts.get(GPU, 0) == min(gpus, 1000)


def test_without_the_right_to_list_nodes_all_else_is_recorded() -> None:
    """An earlier chart's role does not have it."""
    now_s = [0.0]
    following = ObservationFeed(None, monotonic_s=lambda: now_s[0])  # type: ignore[arg-type]  # never started
    for each in following.reflectors.values():
        each.first.set()
    states = []
    for now_s[0] in (0.0, WAIT_S):
        states.append((following.synced, following.not_ready()))
    assert states == [(False, None), (True, None)]


def test_pods_of_one_owner_are_charged_to_the_queue_of_each() -> None:
    """A StatefulSet whose template changes its queue, or a pod that claims another's owner."""
    w = Lives()
    for number, queue in enumerate(("research", "product"), start=1):
        one = pod(5.0 * number, name=f"p{number}")
        one["metadata"]["labels"] = {"muster.dev/queue": queue}
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "set", "uid": "set-uid"}
        one["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
        w.look("pods", f"p{number}", 5.0 * number, one)
    assert charged(w, until=15) == pytest.approx({"research": 10, "product": 5}, abs=0.01)


def test_a_workload_that_comes_again_does_not_move_what_is_over() -> None:
    """A PodGroup of the same name and owner in another queue: what the first one held stays charged as it was."""
    w = started()
    w.look("pods", EVE.pod, 15.0, {}, gone=True)
    w.look("podgroups", EVE.group, 16.0, {}, gone=True)
    w.look("jobs", EVE.owner, 17.0, {}, gone=True)
    later = EVE._replace(queue="product")
    w.look("podgroups", "again", 20.0, group("Running", whose=later))
    w.look("pods", "again-pod", 21.0, pod(21.0))
    assert charged(w, until=30) == pytest.approx({"research": 10, "product": 9}, abs=0.01)


def test_an_owner_counts_only_with_its_namespace() -> None:
    """Who claims the UID of another namespace's Job, before or after its end, changes nothing of it."""
    mallory = BOB._replace(uid="", job=EVE.job, gang=EVE.gang, user="mallory")  # the owner's UID is that of Eve's Job
    before, after = (started() for _ in range(2))
    for w in (before, after):
        w.look("pods", EVE.pod, 15.0, {}, gone=True)
        w.look("jobs", EVE.owner, 15.1, job("Completed", 15), EVE)
        w.look("podgroups", EVE.group, 15.2, {}, gone=True)
        w.look("jobs", EVE.owner, 30.0, {}, gone=True)
    for second in (6.0, 40.0):
        content = group("Running", whose=mallory)
        after.look("podgroups", f"m{second}", second, content, mallory)
        after.look("pods", f"mp{second}", second + 1, pod(second + 1, whose=mallory), mallory)
    told = []
    for w in (before, after):
        store = HistoryStore.for_writing(MEMORY)
        store.write(entered(w.looks).take_changes(), {})
        own = Scope(frozenset({"team"}))
        told.append((read.gangs(store, own), read.events_of_gang(store, own, "team", "train")))
    assert told[0] == told[1]
    (gang,), _ = told[1]
    assert (gang.queue, gang.user, gang.state) == ("research", "eve", "Completed")


def test_rows_of_an_earlier_version_are_charged_to_the_queue_of_their_gang() -> None:
    """They have no queue of their own."""
    store = HistoryStore.for_writing(MEMORY)
    store.write(entered(started().looks).take_changes(), {})
    with store.engine.begin() as connection:
        connection.execute(text("UPDATE holdings SET queue = '', \"user\" = ''"))
    assert stored(store, T + 15) == pytest.approx({"research": 10}, abs=0.01)
    recorder = record(Cluster(started().looks), store)
    assert {each.key for each in held(recorder)} <= {"research"}

"""Whose a gang is and where it ran: nothing of two users, queues, namespaces, racks or resources is mixed up."""

from collections.abc import Iterable
from typing import Any

import pytest
from recorded_lives import BOB, EVE, GPU, Lives, T, Whose, entered, group, job, life, placement, pod

from history import read
from history.entries import Entries
from history.folding import fold_namespace
from history.model import DAY_MS, EVERYTHING, MEMORY, MS, Scope
from history.observations import Observation, apply
from history.retain import tidy
from history.store import HistoryStore
from history.usage import KEYS, UsageRow, usage

EVES_OTHER = EVE._replace(uid="c-", job="tune", gang="tunes", queue="product", rack="c-", asks=(("memory", "1Gi"),))


def recorded(looks: Iterable[Observation]) -> HistoryStore:
    """A store after these looks."""
    entries, store = Entries(), HistoryStore.for_writing(MEMORY)
    for look in looks:
        apply(entries, look)
        store.write(entries.take_changes(), {})
    return store


def lived(*all_of: Whose) -> list[Observation]:
    """The lives of these gangs, all told by one API server."""
    w = Lives()
    for whose in all_of:
        life(w, whose)
    return w.looks


def everything(
    store: HistoryStore, whose: Whose
) -> tuple[list[read.GangHistory], list[read.GangEvent], list[UsageRow]]:
    """All that a reader is told of one gang."""
    own = Scope(frozenset({whose.namespace}))
    gangs = read.gangs(store, own, name=whose.job)
    rows = usage(store, own, KEYS, since=T - 10.0, now=T + 1000.0, queue=whose.queue)
    return gangs, read.events_of_gang(store, own, whose.namespace, whose.job), rows


@pytest.mark.parametrize("after_s", [0, 3, 17])
def test_gangs_that_live_at_one_time_are_told_as_if_alone(after_s: int) -> None:
    """Those of one name in two namespaces, and two of one namespace and user."""
    all_of = [EVE, BOB._replace(submitted=T + after_s), EVES_OTHER._replace(submitted=T + 2 * after_s)]
    together = recorded(lived(*all_of))
    for whose in all_of:
        found = everything(together, whose)
        assert found == everything(recorded(lived(whose)), whose)
        (gang,), _, rows = found
        assert (gang.namespace, gang.queue, gang.user) == (whose.namespace, whose.queue, whose.user)
        assert gang.nodes == (f"{whose.rack}node-1", f"{whose.rack}node-2")
        key = (whose.queue, whose.namespace, whose.user, f"{whose.namespace}/Job/{whose.job}")
        assert {row.key[:4] for row in rows} == {key}
        assert {name for row in rows for name in row.resources} == {*dict(whose.asks), "pods"}


@pytest.mark.parametrize("first", ["group", "job", "pod"])
def test_a_gang_is_whose_its_workload_is(first: str) -> None:
    """Who makes its pods later does not take it over; where its workload names nobody, the first of them counts."""
    w, entries = Lives(), Entries()
    named = {"muster.dev/created-by": "eve"}
    of_group, of_job = group(), job("Pending", 0)
    of_group["metadata"]["annotations"] = named if first == "group" else {}
    of_job["metadata"]["annotations"] = named if first == "job" else {}
    w.look("podgroups", EVE.group, 0.2, of_group)
    w.look("jobs", EVE.owner, 0.3, of_job)
    for number, user in enumerate(("eve" if first == "pod" else "bob", "mallory", "bob"), start=1):
        more = {"annotations": {"muster.dev/created-by": user}}
        w.look("pods", f"pod-{number}", number, pod(number, name=f"pod-{number}", **more))
    later = group("Running")
    later["metadata"]["annotations"] = {"muster.dev/created-by": "mallory"}
    w.look("podgroups", EVE.group, 9.0, later)
    for look in w.looks:
        apply(entries, look)
        (gang,) = entries.gangs.values()
        assert gang.user in {"", "eve"}
    assert gang.user == "eve"


def members(*racks: str, whose: Whose = EVE) -> Lives:
    """A gang with a member on a node of each rack."""
    w = Lives()
    w.look("podgroups", whose.group, 0.2, group(whose=whose), whose)
    runs = [{"node": f"{rack}node-1"} for rack in racks]
    planned = placement(1, "Planned", whose=whose)
    planned["spec"]["podSets"] = [{"name": "worker", "runs": runs}]
    w.look("placements", f"{whose.uid}placement", 1.0, planned, whose)
    for number, rack in enumerate(racks):
        on = whose._replace(rack=rack)
        w.look("pods", f"pod-{number}", 2.0 + number, pod(2.0 + number, name=f"pod-{number}", whose=on), whose)
    return w


def test_each_member_has_its_own_node_and_end() -> None:
    """Members of one gang on two racks that fail together are told one by one, and held what each asked for."""
    w = members("a-", "b-")
    for number, rack in enumerate(("a-", "b-")):
        failed = pod(2.0 + number, "Failed", name=f"pod-{number}", whose=EVE._replace(rack=rack), ended=9)
        w.look("pods", f"pod-{number}", 9.5, failed)
    store = recorded(w.looks)
    told = read.events_of_gang(store, EVERYTHING, "team", "train")
    assert [each.nodes for each in told if each.what == "planned"] == [("a-node-1", "b-node-1")]
    ends = [(each.text.partition(":")[0], each.nodes) for each in told if each.what == "member failed"]
    assert ends == [("pod-0 on a-node-1", ("a-node-1",)), ("pod-1 on b-node-1", ("b-node-1",))]
    (gang,) = read.gangs(store, EVERYTHING)
    assert gang.nodes == ("a-node-1", "b-node-1")
    assert gang.gpu_seconds == pytest.approx(9.5 - 2 + 9.5 - 3, abs=0.6)


def asked(w: Lives) -> dict[str, Any]:
    """What the run asks for in the end."""
    (run,) = entered(w.looks).runs.values()
    return run.asked


def test_a_gang_asks_for_all_members_that_it_has_at_once() -> None:
    """One in place of another that has ended, or gone, asks for no more."""
    w = members("a-", "b-")
    assert asked(w)[GPU] == 2000
    w.look("pods", "pod-0", 5.0, pod(2.0, "Failed", name="pod-0", ended=5))
    w.look("pods", "pod-2", 6.0, pod(6.0, name="pod-2"))
    w.look("pods", "pod-1", 7.0, {}, gone=True)
    w.look("pods", "pod-3", 8.0, pod(8.0, name="pod-3"))
    assert asked(w)[GPU] == 2000
    w.look("pods", "pod-4", 9.0, pod(9.0, name="pod-4"))
    assert asked(w)[GPU] == 3000


def test_members_of_another_gang_ask_for_nothing_of_this_one() -> None:
    """Though both are called alike, in two namespaces."""
    w = members("a-", "b-")
    w.look("podgroups", BOB.group, 0.2, group(whose=BOB), BOB)
    w.look("pods", "b-pod-0", 3.0, pod(3.0, name="pod-0", whose=BOB), BOB)
    entries = entered(w.looks)
    found = {run.gang: run.asked for run in entries.runs.values()}
    assert found["team/job-uid/gang"] == {GPU: 2000, "pods": 2}
    assert found["other/b-job-uid/gang"] == {GPU: 2000, "cpu": 500, "pods": 1}


def test_pods_without_a_group_end_one_by_one() -> None:
    """Two of one owner are one gang, which goes on until the last of them has ended; another owner's is its own."""
    w = Lives()
    for number, owner in enumerate(("set", "set", "other")):
        one = pod(1.0 + number, name=f"p{number}")
        one["metadata"]["labels"] = {"muster.dev/queue": f"of-{owner}"}
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": f"{owner}-uid"}
        one["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
        w.look("pods", f"p{number}", 1.0 + number, one)
    w.look("pods", "p0", 9.0, {}, gone=True)
    found = {gang.name: gang for gang in read.gangs(recorded(w.looks), EVERYTHING)}
    assert {name: (gang.queue, gang.state) for name, gang in found.items()} == {
        "set": ("of-set", "Running"), "other": ("of-other", "Running")
    }  # fmt: skip
    w.look("pods", "p1", 10.0, {}, gone=True)
    found = {gang.name: gang for gang in read.gangs(recorded(w.looks), EVERYTHING)}
    assert {name: gang.state for name, gang in found.items()} == {"set": "Deleted", "other": "Running"}


def test_a_name_that_is_used_again_is_another_gang() -> None:
    """A Job that is deleted and made anew under its name has a story, a state and a user of its own."""
    store = recorded(lived(EVE, EVE._replace(uid="z-", user="bob", submitted=T + 100)))
    later, earlier = read.gangs(store, EVERYTHING, namespace="team", name="train")
    assert (earlier.user, later.user) == ("eve", "bob")
    stories = [read.events_of_gang(store, EVERYTHING, "team", "train", uid=each.uid) for each in (earlier, later)]
    assert [each.what for each in stories[0]] == [each.what for each in stories[1]]
    assert [*stories[0], *stories[1]] == read.events_of_gang(store, EVERYTHING, "team", "train")
    assert all(each.at >= T + 100 for each in stories[1])


def test_a_namespace_that_is_made_again_does_not_show_its_former_tenants_history() -> None:
    """Gangs, stories and usage of before its creation are not its users', folded or not; others' are as they were."""
    store = recorded(lived(EVE, BOB, EVE._replace(uid="z-", user="new", submitted=T + 100)))
    born = Scope(frozenset({"team", "other"}), frozenset({("team", (T + 100) * MS)}))
    assert {gang.user for gang in read.gangs(store, born)} == {"bob", "new"}
    assert all(each.at >= T + 100 for each in read.events_of_gang(store, born, "team", "train"))
    assert read.events_of_gang(store, born, "other", "train") == read.events_of_gang(
        store, EVERYTHING, "other", "train"
    )
    days = {"since": T - 100_000.0, "now": T + 3 * 86_400.0}
    assert {row.key for row in usage(store, born, ("user",), **days)} == {("bob",), ("new",)}
    tidy(store, (T + 3 * 86_400) * MS, keep_days=1, keep_usage_days=100, megabytes=1000)
    assert {row.key for row in usage(store, born, ("user",), **days)} == {("bob",)}  # its first day had two owners
    assert {row.key for row in usage(store, EVERYTHING, ("user",), **days)} == {("eve",), ("bob",), ("new",)}


def test_a_question_about_one_is_answered_by_that_one() -> None:
    """Of gangs and of usage, by queue and by namespace."""
    store = recorded(lived(EVE, BOB, EVES_OTHER))
    of_queue = {
        queue: {(gang.namespace, gang.name) for gang in read.gangs(store, EVERYTHING, queue=queue)}
        for queue in ("research", "product")
    }
    assert of_queue == {"research": {("team", "train")}, "product": {("other", "train"), ("team", "tune")}}
    assert {gang.name for gang in read.gangs(store, EVERYTHING, namespace="team")} == {"train", "tune"}
    assert {(gang.name, gang.user) for gang in read.gangs(store, EVERYTHING, user="bob")} == {("train", "bob")}
    window = {"since": T - 10.0, "now": T + 1000.0}
    whole = {row.key: row.resources for row in usage(store, EVERYTHING, ("queue", "namespace"), **window)}
    for (queue, namespace), resources in whole.items():
        (row,) = usage(store, EVERYTHING, ("queue", "namespace"), queue=queue, namespace=namespace, **window)
        assert row.resources == resources
    of_team = usage(store, EVERYTHING, ("queue",), namespace="team", **window)
    assert [row.key for row in of_team] == [("product",), ("research",)]


@pytest.mark.parametrize("namespace", ["team", "other"])
def test_a_namespace_that_is_folded_takes_nothing_of_another(namespace: str) -> None:
    """Neither gangs nor stories nor usage, though both lived on the same days."""
    store, now = recorded(lived(EVE, BOB)), (T + 3 * 86_400) * MS
    other = {"team": BOB, "other": EVE}[namespace]
    before = everything(store, other)
    rows = usage(store, EVERYTHING, ("queue", "user", "day"), since=T - 100_000.0, now=now / MS)
    fold_namespace(store, namespace, T * MS // DAY_MS * DAY_MS, now)
    assert everything(store, other) == before
    assert read.gangs(store, EVERYTHING, namespace=namespace) == []
    assert usage(store, EVERYTHING, ("queue", "user", "day"), since=T - 100_000.0, now=now / MS) == rows
    tidy(store, now, keep_days=1, keep_usage_days=100, megabytes=1000)
    assert read.gangs(store, EVERYTHING) == []

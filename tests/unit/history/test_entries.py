"""Entries: what looks at objects tell, each thing once, in whatever order and however often they come."""

import random
from types import SimpleNamespace

import pytest
from msgspec import convert, structs
from recorded_lives import BOB, EVE, GPU, Lives, T, entered, group, life, placement, pod, waits
from sqlalchemy import select

from history import hourly, members, read
from history.entries import Entries
from history.hourly import HOUR_MS, OF_GANG, OF_NAMESPACE
from history.model import EVERYTHING, MEMORY, What
from history.observations import Observation, apply
from history.pods import ObservationTime
from history.schema import RUNS
from history.store import HistoryStore
from history.usage import usage
from muster.api.volcano.scheduling import PodGroup

JOB, GROUP, POD = EVE.owner, EVE.group, EVE.pod


def lived() -> list[Observation]:
    """Looks at the whole life of one gang."""
    w = Lives()
    life(w)
    return w.looks


STORY = [
    ("submitted", 0), ("waits", 0), ("planned", 1), ("started", 1), ("evicted", 1), ("restarted", 0),
    ("member evicted", 1), ("planned", 2), ("started", 2), ("ended", 0),
]  # fmt: skip


def recorded(store: HistoryStore) -> tuple[read.GangHistory, list[tuple[str, int]]]:
    """The only gang, and what happened to it."""
    (gang,) = read.gangs(store, EVERYTHING)
    return gang, [(each.what, each.epoch) for each in read.events_of_gang(store, EVERYTHING, "team", "train")]


def check(store: HistoryStore) -> None:
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
    entries, store = entered(lived()), HistoryStore.for_writing(MEMORY)
    store.write(entries.take_changes(), {})
    check(store)
    assert not {*entries.gangs, *entries.runs, *entries.holdings}


@pytest.mark.parametrize("seed", range(12))
def test_a_kill_at_any_look_changes_nothing(seed: int) -> None:
    """Killed at random looks, written or not, and read again from there, the store is the same in the end."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    store, looks = HistoryStore.for_writing(MEMORY), lived()
    entries, written, position = Entries(), 0, 0
    while position < len(looks):
        apply(entries, looks[position])
        position += 1
        if chance.random() < 0.4:
            store.write(entries.take_changes(), {})
            written = position
        if chance.random() < 0.2:
            entries = Entries()
            entries.reopen(*store.open_rows(), store.ended_pods(10))
            position = written
    store.write(entries.take_changes(), {})
    check(store)


@pytest.mark.parametrize("seed", range(8))
def test_looks_that_come_twice_tell_nothing_new(seed: int) -> None:
    """A list beside the watch shows objects as they were before: older versions are no news."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    store, entries, looks = HistoryStore.for_writing(MEMORY), Entries(), lived()
    for number, look in enumerate(looks):
        apply(entries, look)
        earlier = chance.choice(looks[: number + 1])
        if not earlier.gone:
            apply(entries, earlier)
        store.write(entries.take_changes(), {})
    check(store)


def test_a_gang_starts_until_a_pod_runs() -> None:
    """As `muster ps` says, also after a kill in between; with its pod gone it would start again."""
    w, entries, store = Lives(), Entries(), HistoryStore.for_writing(MEMORY)
    bound = pod(5.0, "Pending")
    bound["status"]["containerStatuses"] = []
    w.look("podgroups", GROUP, 0.2, group("Pending", waits("NoRoom", "no room for 1 pod", 1)))
    w.look("placements", "placement", 1.0, placement(1, "Reserved"))
    w.look("placements", "placement", 5.0, placement(1, "Planned"))
    w.look("podgroups", GROUP, 5.1, group("Inqueue"))
    w.look("pods", POD, 5.2, bound)
    w.look("podgroups", GROUP, 5.3, group("Running"))
    w.look("pods", POD, 6.0, pod(5.0))
    w.look("podgroups", GROUP, 7.0, group("Running"))
    w.look("pods", POD, 9.0, {}, gone=True)
    states = []
    for look in w.looks:
        apply(entries, look)
        store.write(entries.take_changes(), {})
        entries = Entries()
        entries.reopen(*store.open_rows(), store.ended_pods(10))
        states.append(recorded(store)[0].state)
    assert states == ["Waiting", "Reserved", "Waiting", *["Starting"] * 3, "Running", "Running", "Starting"]


def test_what_ended_unseen_has_a_bound() -> None:
    """A member that was there before a pause and is not there after it ended in its middle, give or take half of it."""
    entries = entered(lived()[:5])
    assert members.unseen(entries, [POD], (T + 10) * 1000, (T + 30) * 1000) == 1
    (holding,) = entries.take_changes().holdings.values()
    assert (holding.ended, holding.reason, holding.within) == ((T + 20) * 1000, "unseen", 10_000)


@pytest.mark.parametrize("ended", [True, False])
def test_members_that_have_ended_are_told_of_once(*, ended: bool) -> None:
    """After a kill, pods that are still there though they have ended tell nothing, whether their run is open or not."""
    w, entries, store = Lives(), Entries(), HistoryStore.for_writing(MEMORY)
    failed = pod(5.0, "Failed", ended=9)
    w.look("podgroups", GROUP, 0.2, group())
    w.look("pods", POD, 5.0, pod(5.0))
    w.look("pods", POD, 9.0, failed)
    w.look("podgroups", GROUP, 9.5, group("Completed" if ended else "Running"))
    store.write(entered(w.looks, entries).take_changes(), {})
    entries, known = Entries(), len(w.looks)
    entries.reopen(*store.open_rows(), store.ended_pods(10))
    w.look("pods", POD, 20.0, failed)
    w.look("pods", POD, 21.0, failed)
    late = w.looks[known]._replace(moment=ObservationTime((T + 20) * 1000, live=False))
    assert not entered((late, w.looks[-1]), entries).take_changes()


def test_a_finished_pod_of_an_unknown_group_is_no_gang() -> None:
    """A pod that has ended, and whose PodGroup nobody has seen or recorded any more, opens nothing."""
    w = Lives()
    w.look("pods", POD, 9.0, pod(5.0, "Failed", ended=9))
    assert not entered(w.looks).take_changes()


def test_a_pod_without_a_group_is_a_gang_of_its_own() -> None:
    """A pod of a queue whose PodGroup nobody has seen is recorded by its owner or itself, and ends with it."""
    w, store = Lives(), HistoryStore.for_writing(MEMORY)
    alone = pod(5.0)
    alone["metadata"]["labels"] = {"muster.dev/queue": "research"}
    w.look("pods", POD, 5.0, alone)
    w.look("pods", POD, 9.0, {}, gone=True)
    entries = entered(w.looks)
    store.write(entries.take_changes(), {})
    (gang,) = read.gangs(store, EVERYTHING)
    assert (gang.kind, gang.name, gang.queue, gang.state) == ("Pod", EVE.member, "research", "Deleted")
    assert gang.gpu_seconds == pytest.approx(4.0)
    assert not entries.runs


def test_pods_of_others_are_nobodys() -> None:
    """A pod of another scheduler is not recorded, whatever queue it names: its amounts are its owner's claim."""
    w, other = Lives(), pod(5.0)
    other["metadata"]["labels"] = {"muster.dev/queue": "theirs", "muster.dev/managed": "false"}
    other["spec"] |= {"schedulerName": "default-scheduler"}
    other["spec"]["containers"][0]["resources"]["requests"][GPU] = "100000000"
    w.look("pods", POD, 5.0, other)
    assert not entered(w.looks).take_changes()


def test_a_tenant_cannot_fill_the_store() -> None:
    """A gang that waits for ever new reasons has a bounded story, and its sentences are bounded, too."""
    w = Lives()
    w.look("podgroups", GROUP, 0.2, group())
    for number in range(500):
        w.look("podgroups", GROUP, 1.0, group("Pending", waits(f"Reason{number}", "x" * 5_000, 1)))
    found = entered(w.looks).take_changes().gang_events
    assert len(found) == OF_GANG
    assert max(len(each.text) for each in found) == 1_000


def test_quantities_that_cannot_be_read_count_as_a_pod() -> None:
    """One pod with nonsense is recorded as a pod that asks for nothing else."""
    w = Lives()
    w.look("podgroups", GROUP, 0.2, group())
    odd = pod(5.0)
    odd["spec"]["containers"][0]["resources"]["requests"][GPU] = "many"
    w.look("pods", POD, 5.0, odd)
    assert [each.amounts for each in entered(w.looks).take_changes().holdings.values()] == [{"pods": 1}]


def test_texts_of_tenants_fit_into_every_store() -> None:
    """Names without end and characters that PostgreSQL refuses are cut, and everything else of the gang is recorded."""
    w, odd = Lives(), group("Pending", waits("Odd\0reason" + "x" * 500, "a\0b", 1))
    odd["spec"] |= {"queue": "q\0" + "x" * 1_000, "minResources": {"y" * 1_000: "1", "a\0": "1", GPU: "2"}}
    odd["metadata"]["annotations"]["muster.dev/created-by"] = "e\0ve" * 1_000
    odd["metadata"]["ownerReferences"][0] |= {"uid": "u\0" * 500, "name": "n\0" * 500}
    w.look("podgroups", GROUP, 0.2, odd)
    changes = entered(w.looks).take_changes()
    (gang,), (run,) = changes.gangs.values(), changes.runs.values()
    assert run.asked == {GPU: 2000}
    texts = [*map(str, structs.astuple(gang)), *(each.text + each.subject for each in changes.gang_events)]
    assert not any("\0" in text for text in texts)
    assert (len(gang.id) <= 512, len(gang.queue), len(gang.user), len(gang.owner)) == (True, 253, 512, 63)
    HistoryStore.for_writing(MEMORY).write(changes, {})


def test_a_run_that_ended_unseen_ended_with_its_last_member() -> None:
    """Not with a member of another gang; one whose members are not known ended when that was seen."""
    w = Lives()
    for whose in (EVE, BOB):
        w.look("podgroups", whose.group, 0.2, group("Running", whose=whose), whose)
    for whose, end in ((EVE, 30), (BOB, 40)):
        w.look("pods", whose.pod, 5.4, pod(5.4, whose=whose), whose)
        w.look("pods", whose.pod, end, pod(5.4, "Succeeded", ended=end, whose=whose), whose)
    w.look("podgroups", EVE.group, 100, group("Completed"))
    *before, last = w.looks
    for known, end in ((before, 30), (before[:1], 100)):
        entries, store = entered(known), HistoryStore.for_writing(MEMORY)
        apply(entries, last._replace(moment=ObservationTime((T + 100) * 1000, live=False)))
        store.write(entries.take_changes(), {})
        with store.engine.connect() as connection:
            (ended,) = connection.execute(select(RUNS.c.ended).where(RUNS.c.uid == GROUP)).one()
        assert ended == (T + end) * 1000


def test_a_plan_that_is_given_up_is_told_once() -> None:
    """Also where its placement changes in something else; the next one is planned anew."""
    w, store = Lives(), HistoryStore.for_writing(MEMORY)
    w.look("podgroups", GROUP, 0.2, group())
    for second, (epoch, phase) in enumerate([(1, "Planned"), (1, "Abandoned"), (1, "Abandoned"), (2, "Planned")], 1):
        w.look("placements", "placement", second, placement(epoch, phase))
    store.write(entered(w.looks).take_changes(), {})
    assert recorded(store)[1] == [("submitted", 0), ("planned", 1), ("abandoned", 1), ("planned", 2)]


@pytest.mark.parametrize(("gangs", "flips", "kept"), [
    pytest.param(1, 1_000, OF_GANG, id="one gang"), pytest.param(200, 150, OF_NAMESPACE, id="a namespace"),
])  # fmt: skip
def test_a_tenant_who_flips_conditions_writes_few_rows(gangs: int, flips: int, kept: int) -> None:
    """Events beyond the hourly limit become one row per gang with their number; starts, ends and others remain."""
    entries, hour = Entries(), 500_000 * HOUR_MS
    entries.hourly.end_hour(hour)

    def flip(name: str, version: int, reason: str, namespace: str = "evil") -> None:
        condition = {"type": "Unschedulable", "status": "True", "reason": reason, "message": "x"}
        meta = {"uid": f"{namespace}-{name}", "name": name, "namespace": namespace, "resourceVersion": str(version)}
        new = convert({"metadata": meta, "status": {"phase": "Pending", "conditions": [condition]}}, PodGroup)
        moment = ObservationTime(hour + version, live=True)
        apply(entries, Observation("podgroups", meta["uid"], new, gone=False, moment=moment, namespace=namespace))

    for version in range(1, flips + 1):
        for number in range(gangs):
            flip(f"g{number}", version, f"R{version}")
    flip("good", 1, "R", "other")
    for number in range(gangs):
        end = ObservationTime(hour + flips + 1, live=True)
        apply(entries, Observation("podgroups", f"evil-g{number}", None, gone=True, moment=end, namespace="evil"))
    rows = entries.changes.gang_events
    assert [each.what for each in rows if each.run == "other-good"] == ["submitted", "waits"]
    assert [each.what for each in rows if each.run != "other-good"].count("ended") == gangs
    assert len(rows) == kept + gangs + 2
    assert entries.hourly.end_hour(hour + HOUR_MS - 1) == []
    more = entries.hourly.end_hour(hour + HOUR_MS)
    assert len(more) == gangs
    assert sum(int(each.text.split()[0]) for each in more) == gangs * (flips + 1) - kept
    assert entries.hourly.end_hour(hour + 2 * HOUR_MS) == []


def test_a_namespace_leaves_rows_of_further_events_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever number of gangs it makes."""
    monkeypatch.setattr(hourly, "OF_NAMESPACE", 300)
    limit = hourly.HourlyLimit()
    limit.end_hour(HOUR_MS)
    for number in range(1_000):
        limit.admits(SimpleNamespace(id=f"evil/{number}", namespace="evil"), "run", What.WAITS, HOUR_MS)  # type: ignore[arg-type]
    for _ in range(OF_GANG + 5):
        limit.admits(SimpleNamespace(id="good/gang", namespace="good"), "run", What.WAITS, HOUR_MS)  # type: ignore[arg-type]
    rows = {each.gang: each.text.split()[0] for each in limit.end_hour(2 * HOUR_MS)}
    assert (rows.pop("good/gang"), len(rows)) == ("5", hourly.COUNTED)

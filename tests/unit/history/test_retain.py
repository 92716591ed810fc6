"""Bounds: who fills the store loses his own past, and usage stays what it was."""

import random
from pathlib import Path
from typing import Any

import pytest
from histories import gang_of_one
from msgspec.structs import replace
from recorded_lives import BOB, EVE, Lives, T, group, job, pod
from recorder_world import Cluster, at_once, record
from sqlalchemy import func, select
from structlog.testing import capture_logs

from history import hourly, read
from history.folding import fold, fold_namespace
from history.model import (
    DAY_MS,
    EVERYTHING,
    MEMORY,
    GangEventRow,
    GangRun,
    Holding,
    MemberEnd,
    OutageRow,
    RecordedGang,
    RowChanges,
    What,
)
from history.retain import SLICE_MS, Retention, tidy
from history.schema import FOLDS, GANG_EVENTS, GANGS, HOLDINGS, METADATA, RUNS
from history.settings import HistorySettings
from history.spans import floors
from history.store import HistoryStore, StoreError
from history.tally import Tallies, spans_of
from history.usage import UsageRow, closed_since, usage
from muster.api.muster.usage import PERIODS, period_of

GPU = "nvidia.com/gpu"
HOUR_MS = DAY_MS // 24
NOW = 30 * DAY_MS + 13 * HOUR_MS


def put(into: RowChanges, gang: str, namespace: str, begin: int, end: int | None) -> None:
    """A gang of one member, with a story."""
    run, pod = f"run-{gang}", f"pod-{gang}"
    into.holdings[pod] = Holding(
        pod=pod, name="m-0", gang=gang, run=run, epoch=1, node="n", amounts={GPU: 8000, "memory": 2**40},
        bound=begin + 10, ran_from=begin + 20, ended=end, reason=str(MemberEnd.COMPLETED) if end else "", queue="q",
    )  # fmt: skip
    owner = {"namespace": namespace, "queue": "q", "user": "eve", "name": gang, "kind": "Job"}
    into.gangs[gang] = RecordedGang(id=gang, submitted=begin, ended=end, **owner)
    into.runs[run] = GangRun(uid=run, gang=gang, submitted=begin, ended=end, asked={GPU: 8000})
    into.gang_events.append(GangEventRow(gang=gang, run=run, epoch=0, what=What.SUBMITTED, at=begin, text="x" * 500))


def crowded(url: str = MEMORY) -> HistoryStore:
    """A store of one namespace that has much, of today, too, and of two that have little."""
    chance, store, changes = random.Random(1), HistoryStore.for_writing(url), RowChanges()  # noqa: S311 - no secret
    for number in range(600):
        begin = chance.randrange(20 * DAY_MS, NOW - DAY_MS) if number < 300 else chance.randrange(30 * DAY_MS, NOW)
        put(changes, f"many-{number}", "many", begin, min(NOW - 1, begin + 3 * HOUR_MS))
    for number in range(6):
        begin = 15 * DAY_MS + number * 2 * DAY_MS
        put(changes, f"few-{number}", "ab"[number % 2], begin, begin + DAY_MS)
    put(changes, "lives", "many", 25 * DAY_MS, None)
    store.write(changes, {"seen-until": str(NOW)})
    return store


def told(store: HistoryStore, *by: str) -> list[UsageRow]:
    """Usage of all the time."""
    return usage(store, EVERYTHING, by, since=0.0)


def by_room(store: HistoryStore, megabytes: float) -> int:
    """What `tidy` does for room alone."""
    return tidy(store, NOW, keep_days=1000, keep_usage_days=1000, megabytes=megabytes)


def test_who_fills_the_store_loses_his_own_past() -> None:
    """Over its size the oldest of the namespace with the most goes, and nothing of those below their share."""
    store = crowded()
    room = store.megabytes() * 0.7
    before = {by: told(store, *by) for by in (("queue",), ("namespace", "user"), ("day", "namespace"))}
    assert by_room(store, room) >= 1
    assert store.megabytes() <= room
    assert floors(store).keys() == {"many"}
    kept = read.gangs(store, EVERYTHING, limit=1000)
    assert sum(each.namespace in {"a", "b"} for each in kept) == 6
    assert 0 < sum(each.namespace == "many" for each in kept) < 601
    assert min(each.ended for each in kept if each.namespace == "many" and each.ended) * 1000 > floors(store)["many"]
    for by, rows in before.items():
        assert told(store, *by) == rows, by


def test_a_database_that_fails_while_folding_is_an_error_of_the_store() -> None:
    """The recorder tries again at the next tidying, and does not end."""
    store = crowded()
    FOLDS.drop(store.engine)
    with pytest.raises(StoreError, match="cannot be used: no such table: folds"):
        by_room(store, store.megabytes() * 0.7)


def test_today_is_folded_in_parts_of_ten_minutes_except_the_last() -> None:
    """If nothing fits, all data is folded except the last part and live gangs; a second run changes nothing."""
    store = crowded()
    before = told(store, "namespace")
    assert by_room(store, 0) == 3
    floor = floors(store)["many"]
    assert NOW - HOUR_MS < floor <= NOW - SLICE_MS
    kept = read.gangs(store, EVERYTHING, limit=1000)
    assert {each.namespace for each in kept} == {"many"}
    assert all(each.ended is None or each.ended * 1000 > floor for each in kept)
    assert told(store, "namespace") == before
    with capture_logs() as lines:
        assert by_room(store, 0) == 0
    assert [line["event"] for line in lines] == [
        "the history exceeds its limit with data that cannot be aggregated yet"
    ]


def test_names_of_workloads_go_with_what_has_no_room() -> None:
    """Usage of who was folded for room has no names of workloads: thousands of them would fill the store for years."""
    store = crowded()
    tidy(store, NOW, keep_days=3, keep_usage_days=1000, megabytes=1000)
    assert len(told(store, "workload")) == 607
    fold_namespace(store, "many", 27 * DAY_MS, NOW - HOUR_MS)
    names = {row.key[0] for row in told(store, "workload")}
    assert {"many/Job/*", "many/Job/lives", "a/Job/few-0"} <= names
    assert len(names) < 100


def test_days_stay_apart_when_names_go() -> None:
    """Each day of a namespace comes to what it did, without its workloads."""
    store, changes = HistoryStore.for_writing(MEMORY), RowChanges()
    for day, name in ((27, "x"), (27, "y"), (28, "x"), (28, "z")):
        one = gang_of_one("a", f"{name}{day}", day * DAY_MS, 1000 * day)
        for table in ("gangs", "runs", "holdings"):
            getattr(changes, table).update(getattr(one, table))
    store.write(changes, {"seen-until": str(NOW)})
    fold(store, 27 * DAY_MS, 29 * DAY_MS)
    before = told(store, "day")
    assert [row.key for row in before] == [("1970-01-28",), ("1970-01-29",)]
    fold_namespace(store, "a", 29 * DAY_MS, 29 * DAY_MS)
    assert told(store, "day") == before
    assert [row.key for row in told(store, "day", "workload")] == [(f"1970-01-{day}", "a/Job/*") for day in (28, 29)]


def test_budgets_are_the_same_after_a_fold() -> None:
    """What is published does not count a member twice that lives, and whose first days are folded."""
    store = crowded()
    by_room(store, 0)
    tallies = Tallies(NOW, lambda begin: closed_since(store, begin))
    _, _, holdings = store.open_rows()
    told = tallies.document(NOW, spans_of(holdings))
    assert len(holdings) == 1
    of_queue = told["queues"]["q"]
    published = {"month": of_queue, "week": of_queue["week"], "day": of_queue["day"]}
    for period in PERIODS:
        (row,) = usage(store, EVERYTHING, ("queue",), since=period_of(period, NOW / 1000).begin, now=NOW / 1000)
        assert published[period]["seconds"][GPU] == pytest.approx(row.resources[GPU].held), period


def restarting(into: RowChanges, gang: str, namespace: str, begin: int, *, ends: bool) -> None:
    """A Job whose runs end every six hours, with what happened to the Job itself."""
    runs = [begin + number * DAY_MS // 4 for number in range(16)]
    for number, at in enumerate(runs):
        put(into, gang, namespace, at, None if number == len(runs) - 1 and not ends else at + HOUR_MS)
        uid = f"{gang}-{number}"
        into.runs[uid] = replace(into.runs.pop(f"run-{gang}"), uid=uid)
        into.holdings[uid] = replace(into.holdings.pop(f"pod-{gang}"), pod=uid, run=uid)
        into.gang_events.append(replace(into.gang_events.pop(), run=uid))
        into.gang_events += [
            GangEventRow(gang=gang, run=f"job-{gang}", epoch=0, what=what, at=at, subject=str(number))
            for what in (What.RESTARTED, What.SUBMITTED)
        ]
    into.gangs[gang] = replace(into.gangs[gang], name="train", submitted=begin)


def rows_of_others(store: HistoryStore, namespace: str) -> dict[str, list[tuple[Any, ...]]]:
    """Rows of all tables that belong to another namespace, or to none."""
    found = {}
    with store.engine.connect() as connection:
        mine = {*connection.scalars(select(GANGS.c.id).where(GANGS.c.namespace == namespace))}
        for table in METADATA.sorted_tables:
            rows = connection.execute(select(table)).mappings()
            found[table.name] = sorted(
                tuple(row.values())
                for row in rows
                if row.get("namespace") != namespace and row.get("gang", row.get("id")) not in mine
            )
    return found


@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("hours", [1, 36, 24 * 9])
@pytest.mark.parametrize("namespace", ["a", "b"])
def test_folding_a_namespace_leaves_all_rows_of_others(namespace: str, hours: int, *, ends: bool) -> None:
    """Gangs of one queue, user and name in both, whose Jobs restart: of the other one nothing is folded, or dropped."""
    store, changes = HistoryStore.for_writing(MEMORY), RowChanges()
    for each in "ab":
        restarting(changes, f"early-{each}", each, 20 * DAY_MS, ends=True)
        restarting(changes, f"late-{each}", each, 22 * DAY_MS, ends=ends)
    changes.gaps.append(OutageRow(since=22 * DAY_MS, until=22 * DAY_MS + HOUR_MS, text="away"))
    store.write(changes, {"seen-until": str(NOW)})
    fold(store, 20 * DAY_MS, 21 * DAY_MS)
    other = "b" if namespace == "a" else "a"
    fold_namespace(store, other, 21 * DAY_MS, 21 * DAY_MS + HOUR_MS)
    before, own = rows_of_others(store, namespace), rows_of_others(store, other)
    assert all(before.values())
    fold_namespace(store, namespace, 21 * DAY_MS, 21 * DAY_MS + hours * HOUR_MS)
    for table, rows in rows_of_others(store, namespace).items():
        assert rows == before[table], table
    assert rows_of_others(store, other) != own


def test_of_a_gang_that_lives_old_runs_go() -> None:
    """A Job that restarts for ever leaves the stories of its last runs, and its last restart, which is told again."""
    store = HistoryStore.for_writing(MEMORY)
    for number in range(50):
        begin = 20 * DAY_MS + number * HOUR_MS
        run = GangRun(uid=f"run-{number}", gang="g", submitted=begin, ended=None if number == 49 else begin + 1000)
        rows = [GangEventRow(gang="g", run=run.uid, epoch=0, what=What.SUBMITTED, at=begin)]
        rows += [GangEventRow(gang="g", run="job", epoch=0, what=What.RESTARTED, at=begin, subject=str(number))]
        gang = RecordedGang(id="g", namespace="n", name="j", kind="Job", queue="q", submitted=20 * DAY_MS)
        store.write(RowChanges(gangs={"g": gang}, runs={"": run}, gang_events=rows), {"seen-until": str(NOW)})
    by_room(store, 0)
    assert [each.what for each in read.events_of_gang(store, EVERYTHING, "n", "j")] == [What.SUBMITTED, What.RESTARTED]


def test_room_that_came_free_goes_back_to_the_disk(tmp_path: Path) -> None:
    """The file is smaller once its past is folded."""
    store = crowded(f"sqlite:///{tmp_path / 'history.db'}")
    with store.engine.connect() as connection:
        before = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        by_room(store, 0)
        assert connection.exec_driver_sql("PRAGMA page_count").scalar_one() < before / 2


def test_a_store_over_its_size_is_tidied_within_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any other one each hour: a tenant's flood must not fill the disk until then."""
    now_s, size, tidied = [0.0], [0.0], list[float]()
    store = HistoryStore.for_writing(MEMORY)
    monkeypatch.setattr(store, "megabytes", lambda: size[0])
    monkeypatch.setattr("history.retain.tidy", lambda *_, **__: tidied.append(now_s[0]))
    retention = Retention(store, HistorySettings(max_megabytes=16), lambda: now_s[0])
    for at, megabytes in (
        (0, 1),
        (90, 16),
        (120, 17),
        (160, 17),
        (220, 17),
        (290, 18),
        (350, 1),
        (3700, 1),
        (3890, 1),
        (100, 1),
    ):
        now_s[0], size[0] = at, megabytes
        retention.apply()
    assert tidied == [0, 160, 290, 3890, 100], (
        "not at 220, as it has not grown; the last one with a clock that was set back"
    )


def flood(chance: random.Random) -> Lives:
    """A tenant who makes and deletes 30 gangs in five minutes, every third one with a pod that restarts."""
    w = Lives()
    for number in range(30):
        whose = (EVE, BOB)[number % 2]._replace(uid=f"{number}-", namespace="eve", gang=f"g{number}", job=f"j{number}")
        begin, again = 10.0 * number, f"{number}-again"
        w.look("jobs", whose.owner, begin, job("Running", begin, whose=whose), whose)
        w.look("podgroups", whose.group, begin + 0.1, group("Running", whose=whose), whose)
        w.look("pods", whose.pod, begin + 1, pod(begin + 1, whose=whose), whose)
        if number % 3 == 0:
            w.look("pods", whose.pod, begin + 4, {}, whose, gone=True)
            w.look("pods", again, begin + 5, pod(begin + 5, whose=whose), whose)
        ends = [("jobs", whose.owner), ("podgroups", whose.group), ("pods", again if number % 3 == 0 else whose.pod)]
        chance.shuffle(ends)
        for after, (kind, uid) in enumerate(ends, start=7):
            w.look(kind, uid, begin + after, {}, whose, gone=True)
    return w


@pytest.mark.parametrize("seed", range(3))
def test_a_tenant_who_makes_and_deletes_gangs_leaves_few_rows(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What exceeds the rows of an hour is summed: usage by queue and user is as without a limit, whoever restarts.

    Except for what is lost when a gang starts again: that is known later.
    """
    at_once(monkeypatch)
    chance = random.Random(seed)  # noqa: S311 - no secret
    looks, found = flood(chance).looks, []
    for limit in (10**6, 15):
        monkeypatch.setattr(hourly, "ROWS_OF_NAMESPACE", limit)
        store, cluster = HistoryStore.for_writing(MEMORY), Cluster(looks)
        for until in sorted([chance.randrange(len(looks)), len(looks)]):
            recorder = record(cluster, store, until)
        rows = usage(store, EVERYTHING, ("queue", "user"), since=T - DAY_MS // 1000, now=T + 3600)
        with store.engine.connect() as connection:
            tables = (GANGS, RUNS, HOLDINGS, GANG_EVENTS)
            counts = [connection.scalar(select(func.count()).select_from(table)) or 0 for table in tables]
        assert recorder.tallies is not None
        kept = [{name: replace(each, lost=0) for name, each in row.resources.items()} for row in rows]
        found.append((kept, recorder.tallies.document(T * 1000 + HOUR_MS, [])["queues"], counts))
    assert found[0][0] == found[1][0]
    assert found[0][1] == found[1][1]
    assert found[0][2][:3] == [30, 30, 40]
    assert sum(found[1][2][:3]) <= 2 * (15 + 3)  # each recorder counts again, and a gang ends that has begun
    assert found[1][2][3] <= 8 * found[1][2][0]

"""What a recorder publishes is what the store says, before and after each restart, whatever happened in between."""

import random
from datetime import UTC, datetime

import pytest
from recorded_lives import BOB, EVE, GPU, Lives, group, life, pod, waits
from recorder_world import Cluster, FailingStore, at_once, record

from history import read, recorder
from history.hourly import OF_GANG
from history.model import EVERYTHING, MEMORY, MS
from history.observations import Observation
from history.publish import UsageCounters, held
from history.recorder import HistoryRecorder
from history.store import HistoryStore, StoreError
from history.usage import SEEN, usage
from muster.api.muster.usage import PERIODS, period_of

MONDAY = round(datetime(2027, 3, 1, tzinfo=UTC).timestamp())
TUESDAY = MONDAY + 86_400
STORY = [
    "submitted", "waits", "planned", "started", "evicted", "restarted", "member evicted", "planned", "started", "ended",
]  # fmt: skip
Amounts = dict[tuple[str, str, str], tuple[float, ...]]


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No waits."""
    at_once(monkeypatch)


def lived(midnight: int = MONDAY) -> list[Observation]:
    """Two gangs of one name, with a midnight in their lives, and a pod without a group that stays."""
    w = Lives()
    eve, bob = (each._replace(submitted=midnight - before) for each, before in ((EVE, 12), (BOB, 9)))
    life(w, eve)
    life(w, bob)
    alone = pod(1.0, name="alone", whose=bob)
    alone["metadata"]["labels"] = {"muster.dev/queue": "small"}
    w.look("pods", "alone", 1.0, alone, bob)
    return w.looks


def told(recorder: HistoryRecorder, now_ms: int) -> Amounts:
    """What is published and counted: unit-seconds by period, queue and resource."""
    assert recorder.tallies is not None
    found: Amounts = {}
    for queue, each in recorder.tallies.document(now_ms, held(recorder))["queues"].items():
        for period, seconds in (("month", each.get("seconds", {})), *((p, each[p]["seconds"]) for p in PERIODS[1:])):
            found |= {(period, queue, resource): (amount,) for resource, amount in seconds.items() if amount}
    for family in UsageCounters(recorder, lambda: now_ms / MS).collect():
        for sample in family.samples:
            if sample.value:
                found[family.name, sample.labels["queue"], sample.labels["resource"]] = (sample.value,)
    return found


def stored(store: HistoryStore, now_ms: int) -> Amounts:
    """What the store says of the same."""
    found: Amounts = {}
    for period in PERIODS:
        for row in usage(store, EVERYTHING, ("queue",), since=period_of(period, now_ms / MS).begin, now=now_ms / MS):
            for resource, each in row.resources.items():
                amounts = {period: each.held}
                if period == "month":
                    amounts |= {"muster_history_held_seconds": each.held, "muster_history_used_seconds": each.used}
                found |= {(name, row.key[0], resource): (amount,) for name, amount in amounts.items() if amount}
    return found


def same(found: Amounts, expected: Amounts) -> None:
    """What is published is rounded to milliseconds."""
    assert found.keys() == expected.keys()
    for key, amounts in found.items():
        assert amounts == pytest.approx(expected[key], abs=0.002), key


def check_end(store: HistoryStore) -> None:
    """The whole of both gangs, each with what is its own."""
    gangs = {gang.namespace: gang for gang in read.gangs(store, EVERYTHING) if gang.name == "train"}
    for whose in (EVE, BOB):
        gang = gangs[whose.namespace]
        assert (gang.queue, gang.user, gang.state) == (whose.queue, whose.user, "Completed")
        assert (gang.restarts, gang.evictions) == (1, 1)
        assert gang.nodes == (f"{whose.rack}node-1", f"{whose.rack}node-2")
        assert sorted(each.what for each in read.events_of_gang(store, EVERYTHING, whose.namespace, "train")) == sorted(
            STORY
        )


@pytest.mark.parametrize(("seed", "midnight"), [(0, MONDAY), (1, TUESDAY)])
def test_restarts_change_nothing_that_is_published(seed: int, midnight: int) -> None:
    """The published is the stored, and after a restart it is what it was before."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    cluster, store = Cluster(lived(midnight)), HistoryStore.for_writing(MEMORY)

    while cluster.happened < len(cluster.looks):
        until = cluster.happened + chance.randint(1, 8)
        before = told(record(cluster, store, until, batches=lambda: chance.randint(1, 4)), cluster.now_ms)
        same(before, stored(store, cluster.now_ms))
        assert told(record(cluster, store), cluster.now_ms) == before
    assert before.keys() >= {("day", "small", GPU), ("month", "product", "cpu"), ("week", "research", GPU)}
    check_end(store)


def test_a_member_that_ended_before_a_restart_is_published_once() -> None:
    """After any pass, also while its gang keeps running and the API server still has the pod."""
    cluster, store = Cluster(lived()), HistoryStore.for_writing(MEMORY)
    still_there: set[str] = set()
    for until in range(1, len(cluster.looks) + 1):
        before = told(record(cluster, store, until), cluster.now_ms)
        again = record(cluster, store)
        assert told(again, cluster.now_ms) == before, cluster.looks[until - 1]
        same(before, stored(store, cluster.now_ms))
        listed = {look.uid for look in cluster.listed() if look.kind == "pods"}
        still_there |= listed & {*store.ended_pods(len(cluster.looks))} if again.entries.runs else set()
    assert len(still_there) == 2
    check_end(store)


@pytest.mark.parametrize("remembers", [True, False])
@pytest.mark.parametrize("seed", range(2))
def test_what_happens_while_none_records_is_published_once(seed: int, *, remembers: bool) -> None:
    """Read afterwards or closed in the middle of the pause, what has ended is counted as the store has it."""
    chance = random.Random(100 + seed)  # noqa: S311 - no secret
    cluster, store = Cluster(lived()), HistoryStore.for_writing(MEMORY)
    cluster.remembers = remembers
    while cluster.happened < len(cluster.looks):
        record(cluster, store, cluster.happened + chance.randint(1, 6), batches=lambda: chance.randint(1, 4))
        cluster.happens(chance.randint(0, 6))
        began = record(cluster, store)
        same(told(began, cluster.now_ms), stored(store, cluster.now_ms))
        assert ("alone" in began.entries.runs.keys() ^ began.entries.holdings.keys()) == any(
            look.uid == "alone" for look in cluster.looks[: cluster.happened]
        )
    if remembers:
        check_end(store)


def test_an_end_within_a_pause_that_is_forgotten_is_in_its_middle() -> None:
    """A gang that was there before, and is not there afterwards, has ended half way, and so have its members."""
    cluster, store = Cluster(lived()), HistoryStore.for_writing(MEMORY)
    cluster.remembers = False
    begun = next(number for number, look in enumerate(cluster.looks, 1) if look.uid == EVE.pod)
    record(cluster, store, begun)
    before = cluster.now_ms
    cluster.happens(len(cluster.looks))
    cluster.now_ms += 60 * MS
    record(cluster, store)
    (gang,) = (each for each in read.gangs(store, EVERYTHING) if each.namespace == EVE.namespace)
    assert gang.ended == pytest.approx((before + cluster.now_ms) / 2 / MS, abs=0.001)
    (gap,) = read.gaps(store)
    assert (gap.since, gap.until) == (before / MS, cluster.now_ms / MS)


def test_a_write_that_failed_loses_nothing_and_counts_once() -> None:
    """It is tried again with all that it had, and what is published is right after each."""
    cluster = Cluster(lived())
    store = FailingStore(HistoryStore.for_writing(MEMORY).engine, MEMORY)

    def changed(recorder: HistoryRecorder) -> None:
        if not store.failures and not cluster.happened % 4:
            same(told(recorder, cluster.now_ms), stored(store, cluster.now_ms))
        store.failures = 2

    record(cluster, store, len(cluster.looks), changed=changed)
    check_end(store)


def test_a_store_that_fails_for_long_ends_the_recorder_before_its_memory_is_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What waits is read again from the API server by the next process, which begins once the store answers."""
    monkeypatch.setattr(recorder, "MOST_QUEUED", 3)
    store = FailingStore(HistoryStore.for_writing(MEMORY).engine, MEMORY)
    made = record(Cluster(lived()), store)
    made.feed.observations.qsize = lambda: 4  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="more than 3 observations are waiting for the store, which fails: no room"):
        made._failed(StoreError("no room"))


def test_a_tally_that_cannot_be_read_is_not_published_until_it_can() -> None:
    """At midnight the new day is read from the store: where that fails, all is read again, and counted once."""
    cluster = Cluster(lived())
    store = FailingStore(HistoryStore.for_writing(MEMORY).engine, MEMORY)
    unknown: list[int] = []

    def changed(recorder: HistoryRecorder) -> None:
        store.unreadable = -3200 <= cluster.now_ms - MONDAY * MS < 0
        if recorder.tallies is None:
            unknown.append(cluster.now_ms)
        elif not store.unreadable and not cluster.happened % 4:
            same(told(recorder, cluster.now_ms), stored(store, cluster.now_ms))

    def batches() -> int:
        return len(cluster.looks) if unknown and not store.unreadable else 1

    recorder = record(cluster, store, len(cluster.looks), changed=changed, batches=batches)
    assert unknown
    same(told(recorder, cluster.now_ms), stored(store, cluster.now_ms))
    check_end(store)


@pytest.mark.parametrize("midnight", [MONDAY, TUESDAY])
def test_what_ends_with_the_first_news_of_a_day_counts_once(midnight: int) -> None:
    """The new day is read from the store after the transaction with that end, which is in it already."""
    cluster, store = Cluster(lived(midnight)), HistoryStore.for_writing(MEMORY)

    def batches() -> int:
        return 1 if cluster.now_ms < midnight * MS - 3500 else len(cluster.looks)

    recorder = record(cluster, store, len(cluster.looks), batches=batches)
    same(told(recorder, cluster.now_ms), stored(store, cluster.now_ms))
    check_end(store)


def test_while_the_api_server_does_not_answer_no_time_is_claimed() -> None:
    """It notes that it has looked once it can read again, and since when it could not."""
    cluster, store = Cluster(lived()), HistoryStore.for_writing(MEMORY)
    first, last = cluster.looks[6].moment.at, cluster.looks[20].moment.at
    seen: list[int] = []
    cluster.silent = range(first, last)

    def changed(recorder: HistoryRecorder) -> None:
        del recorder
        seen.append(int(store.note(SEEN)))

    record(cluster, store, len(cluster.looks), changed=changed)
    assert not any(first <= each < last for each in seen)
    assert seen == sorted(seen)
    assert [(gap.since, gap.until) for gap in read.gaps(store)] == [(first / MS, last / MS)]


def test_events_before_the_first_pass_count_in_their_hour() -> None:
    """Objects that a recorder reads at its start; there is no row of 1970."""
    w = Lives()
    for number in range(OF_GANG + 10):
        w.look("podgroups", EVE.group, 0.2 + number / MS, group("Pending", waits(f"R{number}", "x", 0)))
    cluster, store = Cluster(w.looks), HistoryStore.for_writing(MEMORY)
    record(cluster, store, 1)
    cluster.happens(len(w.looks) - 2)
    record(cluster, store, len(w.looks))
    events = [each.what for each in read.events_of_gang(store, EVERYTHING, EVE.namespace, "train")]
    assert (len(events) >= OF_GANG, "more" in events) == (True, False)

"""Usage: exact integrals, whatever the time is cut into and whoever asks; and days that are folded."""

import random
from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise, product

import histories
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select

from history.folding import fold_namespace
from history.integral import Amounts, TimeSpan, Totals, add, integrate
from history.model import DAY_MS, EVERYTHING, MEMORY, GangRun, Holding, MemberEnd, RecordedGang, RowChanges, Scope
from history.retain import tidy
from history.schema import GANGS
from history.store import HistoryStore
from history.tally import Tallies, spans_of
from history.usage import closed_since, usage
from muster.api.muster.usage import KEY, PERIODS, Period, period_of, read_usage

GPU = "nvidia.com/gpu"
NOW = 10 * DAY_MS
MOMENTS = st.integers(0, 12 * DAY_MS)
AMOUNTS = st.dictionaries(st.sampled_from([GPU, "cpu", "memory"]), st.integers(1, 2**63 - 1), min_size=1)
NEAR = st.integers(DAY_MS - 20, DAY_MS + 20)
"""Milliseconds around a midnight."""


@st.composite
def spans(draw: st.DrawFn, moments: st.SearchStrategy[int] = MOMENTS) -> TimeSpan[str]:
    """What somebody asked for or held, with an end or without one."""
    begin, *later = sorted(draw(st.lists(moments, min_size=4, max_size=4)))
    end, used, lost = (draw(st.none() | st.just(each)) for each in draw(st.permutations(later)))
    if not draw(st.booleans()):
        return TimeSpan(draw(st.sampled_from("qr")), draw(AMOUNTS), begin, end)
    return TimeSpan(draw(st.sampled_from("qr")), draw(AMOUNTS), begin, end, held=True, used_from=used, lost_from=lost)


def summed(all_totals: Iterable[Totals[str]]) -> Totals[str]:
    """The sum of several totals."""
    result: Totals[str] = defaultdict(Amounts)
    for totals in all_totals:
        add(result, totals)
    return result


def counted(found: list[TimeSpan[str]], moments: Iterable[int]) -> Totals[str]:
    """What is asked for, held, used and lost in each of these milliseconds, one after another."""
    totals: Totals[str] = defaultdict(Amounts)
    for at, span in product(moments, found):
        if at < span.begin or (span.end is not None and at >= span.end):
            continue
        used, lost = (span.held and each is not None and at >= each for each in (span.used_from, span.lost_from))
        now = Amounts(asked=not span.held, held=span.held, used=used, lost=lost)
        for resource, amount in span.amounts.items():
            totals[span.key, resource].add(now, amount)
    return totals


@given(st.lists(spans(NEAR), max_size=6), NEAR, NEAR)
def test_the_integral_counts_each_millisecond(found: list[TimeSpan[str]], since: int, until: int) -> None:
    """It comes to what is counted millisecond by millisecond, over the whole and of each day."""
    assert integrate(found, since, until) == counted(found, range(since, until))
    of_days = integrate(found, since, until, lambda key, day: f"{key} on {day}")
    for day in range(3):
        moments = range(max(since, day * DAY_MS), min(until, (day + 1) * DAY_MS))
        expected = {(f"{key} on {day}", resource): each for (key, resource), each in counted(found, moments).items()}
        assert {place: each for place, each in of_days.items() if place[0].endswith(f" {day}")} == expected


@given(st.lists(spans(), max_size=8), st.lists(MOMENTS, max_size=6))
def test_the_parts_of_a_time_sum_up_to_the_whole(found: list[TimeSpan[str]], cuts: list[int]) -> None:
    """However a time is cut, its parts come to exactly as much as the whole, and so do its days."""
    parts = [integrate(found, begin, end) for begin, end in pairwise(sorted({0, 12 * DAY_MS, *cuts}))]
    whole = integrate(found, 0, 12 * DAY_MS)
    assert summed(parts) == whole
    assert integrate(found, 0, 12 * DAY_MS, lambda key, _: key) == whole


@given(st.lists(spans(), max_size=8))
def test_keys_sum_up_to_all_without_one(found: list[TimeSpan[str]]) -> None:
    """Whatever usage is told by, it comes to the same total."""
    without = summed(defaultdict(Amounts, {("", name): each}) for (_, name), each in integrate(found, 0, NOW).items())
    assert integrate([each._replace(key="") for each in found], 0, NOW) == without


@given(st.lists(spans(), max_size=8))
def test_nobody_uses_or_loses_more_than_he_held(found: list[TimeSpan[str]]) -> None:
    """Used and lost are parts of what was held."""
    for amounts in integrate(found, 0, NOW).values():
        assert 0 <= amounts.used <= amounts.held
        assert 0 <= amounts.lost <= amounts.held


def filled(seed: int) -> tuple[HistoryStore, int]:
    """A store with gangs of some days, some of which still run; and its present."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    store, now = HistoryStore.for_writing(MEMORY), 30 * DAY_MS
    for number in range(30):
        begin = chance.randrange(20 * DAY_MS, now - 1)
        end = chance.choice([None, chance.randrange(begin, now)])
        gang = f"gang-{number}"
        owner = {"namespace": chance.choice("ab"), "queue": chance.choice("qr"), "user": chance.choice(["", "eve"])}
        holding = Holding(
            pod=f"pod-{number}", name="m-0", gang=gang, run=f"run-{number}", epoch=1, node="n", queue=owner["queue"],
            amounts={GPU: 8000, "memory": 2**40}, bound=begin + 10, ran_from=begin + 20,
            ended=end and max(end, begin + 30),
            reason=chance.choice([MemberEnd.COMPLETED, MemberEnd.EVICTED]) if end else "",
        )  # fmt: skip
        runs = {"": GangRun(uid=f"run-{number}", gang=gang, submitted=begin, ended=holding.ended, asked={GPU: 8000})}
        gangs = {gang: RecordedGang(id=gang, name="x", kind="Job", submitted=begin, ended=holding.ended, **owner)}
        store.write(RowChanges(gangs=gangs, runs=runs, holdings={"": holding}), {"seen-until": str(now)})
    return store, now


@pytest.mark.parametrize("seed", range(2))
def test_usage_is_that_of_each_row(seed: int) -> None:
    """Whatever is asked, usage is what every single row comes to on every day, before and after folds."""
    store, now = histories.lived(MEMORY, seed)
    rows = histories.rows_of(store)
    histories.same_as_rows(store, rows, now, seed)
    assert tidy(store, now, keep_days=12, keep_usage_days=100, megabytes=1000) > 0
    fold_namespace(store, "a", 18 * DAY_MS, 25 * DAY_MS + 12_345)
    histories.same_as_rows(store, rows, now, seed, ("queue", "namespace", "user", "day"), DAY_MS)


@pytest.mark.parametrize("seed", range(2))
def test_folding_days_changes_no_usage(seed: int) -> None:
    """Usage of whole days is the same before and after their detail has gone, but what is lost later than that."""
    store, now = filled(seed)
    asked = {"since": 0.0, "until": now / 1000}
    before = usage(store, EVERYTHING, ("queue", "user", "day"), **asked)
    assert tidy(store, now, keep_days=3, keep_usage_days=100, megabytes=1000) > 0
    after = usage(store, EVERYTHING, ("queue", "user", "day"), **asked)
    assert [(each.key, each.resources) for each in after] == [(each.key, each.resources) for each in before]
    assert tidy(store, now, keep_days=3, keep_usage_days=100, megabytes=1000) == 0


def test_usage_per_day_goes_at_last() -> None:
    """Beyond its own limit usage per day is dropped as well."""
    store, now = filled(2)
    tidy(store, now, keep_days=1, keep_usage_days=3, megabytes=1000)
    days = {row.key[0] for row in usage(store, EVERYTHING, ("day",), since=0.0, until=now / 1000)}
    assert days == {"1970-01-28", "1970-01-29", "1970-01-30"}


@pytest.mark.parametrize("folded", [False, True])
def test_others_count_for_nothing(*, folded: bool) -> None:
    """Who may see one namespace gets the usage of that alone, of folded days, too."""
    store, now = filled(3)
    if folded:
        tidy(store, now, keep_days=1, keep_usage_days=100, megabytes=1000)
    mine = usage(store, Scope(frozenset({"a"})), ("namespace",), since=0.0)
    everything = {row.key: row for row in usage(store, EVERYTHING, ("namespace",), since=0.0)}
    assert mine == [everything["a",]]
    assert usage(store, Scope(frozenset()), (), since=0.0) == []


def test_an_unknown_key_is_named() -> None:
    """The error lists what there is."""
    with pytest.raises(ValueError, match="usage cannot be grouped by 'team'; valid keys are queue, namespace, user"):
        usage(HistoryStore.for_writing(MEMORY), EVERYTHING, ("team",), since=0.0)


class OlderQueue(msgspec.Struct):
    """What an extender of an earlier version reads of a queue."""

    month: str = ""
    seconds: dict[str, float] = {}


class Older(msgspec.Struct):
    """What it reads in all."""

    until: float
    queues: dict[str, OlderQueue] = {}


@pytest.mark.parametrize("seed", range(3))
def test_what_is_published_is_what_usage_says(seed: int) -> None:
    """The tallies of month, week and day are the usage of that time; an older extender finds the month in its place."""
    store, now = filled(seed)
    tallies = Tallies(now, lambda begin: closed_since(store, begin))
    _, _, holdings = store.open_rows()
    later = now + DAY_MS // 4
    document = tallies.document(later, spans_of(holdings))
    told = read_usage({KEY: msgspec.json.encode(document).decode()})
    assert (told.until, told.periods) == (later / 1000, PERIODS)
    older = msgspec.convert(msgspec.to_builtins(document), Older)
    assert {name: (each.month, each.seconds) for name, each in older.queues.items() if each.month} == {
        name: (each.month, each.seconds) for name, each in told.queues.items()
    }
    names: dict[Period, str] = {"month": "1970-01", "week": "1970-W05", "day": "1970-01-31"}
    for period, name in names.items():
        rows = usage(store, EVERYTHING, ("queue",), since=period_of(period, later / 1000).begin, now=later / 1000)
        held = {row.key[0]: row.resources[GPU].held for row in rows}
        found = {queue: each.within(period, name)[GPU] for queue, each in told.queues.items()}
        assert found == pytest.approx(held)
        assert sum(held.values()) > 0


def test_at_midnight_the_month_goes_on_and_the_day_begins() -> None:
    """What has ended is counted once in each, whether it was read from the store or told."""
    store, now = filled(1)
    asked: list[int] = []

    def closed(begin: int) -> Totals[str]:
        asked.append(begin)
        return closed_since(store, begin)

    tallies = Tallies(now, closed)
    assert tallies.renew(now + 1, closed) == set()
    midnight, before = now + DAY_MS, {key: each.held for key, each in tallies.of["week"].at(now, ()).items()}
    queue = queue_of(store, "gang-0")
    ended = Holding(
        pod="p", name="m-0", gang="gang-0", run="run-0", epoch=1, node="n", amounts={GPU: 1000}, queue=queue,
        bound=midnight - 7000, ran_from=None, ended=midnight + 5000, reason="",
    )  # fmt: skip
    store.write(RowChanges(holdings={"p": ended}), {})
    begun = tallies.renew(midnight + 5000, closed)
    assert begun == {"day", "month"}  # the first of February 1970, a Sunday
    assert asked[3:] == [midnight, midnight]
    tallies.close([*spans_of([ended])], but=begun)
    held = {period: each.at(midnight + 5000, ())[queue, GPU].held for period, each in tallies.of.items()}
    assert held["day"] == held["month"] == 1000 * 5000
    assert held["week"] == before[queue, GPU] + 1000 * 12000


def queue_of(store: HistoryStore, gang: str) -> str:
    """The queue of a gang."""
    with store.engine.connect() as connection:
        return str(connection.scalar(select(GANGS.c.queue).where(GANGS.c.id == gang)))


def test_usage_ends_where_it_is_asked_to() -> None:
    """Or at the present, whatever comes first; by default that is when the recorder looked last."""
    store = HistoryStore.for_writing(MEMORY)
    store.write(histories.gang_of_one("a", "x", NOW, 10_000, gpus=1), {"seen-until": str(NOW + 8000)})
    since = NOW / 1000

    def held(**times: float) -> float:
        (row,) = usage(store, EVERYTHING, (), since=since, **times)
        return row.resources[GPU].held

    assert (held(), held(until=since + 5), held(until=since + 9)) == (8, 5, 8)
    assert (held(now=since + 3), held(now=since + 3, until=since + 2), held(now=since + 20)) == (3, 2, 10)

"""Usage: exact integrals, whatever the time is cut into and whoever asks; and days that are folded."""

import random
from itertools import pairwise

import histories
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select

from history.folding import fold_namespace
from history.integral import KEYS, Amounts, Owner, Span, Totals, integrate
from history.model import DAY_MS, MEMORY, Changes, End, Gang, Holding, Run
from history.retain import tidy
from history.schema import GANGS
from history.scope import EVERYTHING, Scope
from history.store import Store
from history.tally import Tallies
from history.usage import closed_since, usage
from muster.api.muster.usage import KEY, PERIODS, Period, period_of, read_usage

GPU = "nvidia.com/gpu"
NOW = 10 * DAY_MS
MOMENTS = st.integers(0, 12 * DAY_MS)
OWNERS = st.builds(
    Owner,
    namespace=st.sampled_from(["a", "b"]),
    queue=st.sampled_from(["q", "r"]),
    user=st.sampled_from(["", "eve"]),
    kind=st.just("Job"),
    name=st.sampled_from(["x", "y"]),
)
AMOUNTS = st.dictionaries(st.sampled_from([GPU, "cpu", "memory"]), st.integers(1, 2**63 - 1), min_size=1)


@st.composite
def spans(draw: st.DrawFn) -> Span:
    """What somebody asked for or held, with an end or without one."""
    begin = draw(MOMENTS)
    end = draw(st.none() | st.integers(begin, 12 * DAY_MS))
    held = draw(st.booleans())
    used, lost = (draw(st.none() | st.integers(begin, 12 * DAY_MS)) if held else None for _ in range(2))
    return Span(draw(OWNERS), draw(AMOUNTS), begin, end, held=held, used_from=used, lost_from=lost)


def summed(all_totals: list[Totals]) -> Totals:
    """The sum of several totals."""
    result: Totals = {}
    for totals in all_totals:
        for key, amounts in totals.items():
            result.setdefault(key, Amounts()).add(amounts)
    return result


@given(st.lists(spans(), max_size=8), st.lists(MOMENTS, max_size=6), st.lists(st.sampled_from(KEYS), unique=True))
def test_the_parts_of_a_time_sum_up_to_the_whole(found: list[Span], cuts: list[int], by: list[str]) -> None:
    """However a time is cut, its parts come to exactly as much as the whole."""
    moments = sorted({0, 12 * DAY_MS, *cuts})
    parts = [integrate(found, by, begin, end, NOW) for begin, end in pairwise(moments)]
    assert summed(parts) == integrate(found, by, 0, 12 * DAY_MS, NOW)


@given(st.lists(spans(), max_size=8), st.lists(st.sampled_from(KEYS), unique=True, min_size=1))
def test_rows_sum_up_to_the_row_without_a_key(found: list[Span], by: list[str]) -> None:
    """Whatever usage is told by, its rows come to the same total."""
    total = integrate(found, (), 0, NOW, NOW)
    rows = integrate(found, by, 0, NOW, NOW)
    assert summed([{((), resource): amounts} for (_, resource), amounts in rows.items()]) == total


@given(st.lists(spans(), max_size=8))
def test_nobody_uses_or_loses_more_than_he_held(found: list[Span]) -> None:
    """Used and lost are parts of what was held."""
    for amounts in integrate(found, ("queue",), 0, NOW, NOW).values():
        assert 0 <= amounts.used <= amounts.held
        assert 0 <= amounts.lost <= amounts.held


def filled(seed: int) -> tuple[Store, int]:
    """A store with gangs of some days, some of which still run; and its present."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    store, now = Store.for_writing(MEMORY), 30 * DAY_MS
    for number in range(30):
        begin = chance.randrange(20 * DAY_MS, now - 1)
        end = chance.choice([None, chance.randrange(begin, now)])
        gang = f"gang-{number}"
        owner = {"namespace": chance.choice("ab"), "queue": chance.choice("qr"), "user": chance.choice(["", "eve"])}
        holding = Holding(
            pod=f"pod-{number}", name="m-0", gang=gang, run=f"run-{number}", epoch=1, node="n",
            amounts={GPU: 8000, "memory": 2**40}, bound=begin + 10, ran_from=begin + 20,
            ended=end and max(end, begin + 30),
            reason=chance.choice([End.COMPLETED, End.EVICTED]) if end else "",
        )  # fmt: skip
        written = Changes(
            gangs={gang: Gang(id=gang, name="x", kind="Job", submitted=begin, ended=holding.ended, **owner)},
            runs={"": Run(uid=f"run-{number}", gang=gang, submitted=begin, ended=holding.ended, asked={GPU: 8000})},
            holdings={"": holding},
        )
        store.write(written, {"seen-until": str(now)})
    return store, now


@pytest.mark.parametrize("seed", range(4))
def test_the_database_sums_up_what_spans_come_to(seed: int) -> None:
    """Whatever is asked, sums of times in the database are the integral of each span, to the millisecond."""
    store, now = histories.lived(MEMORY, seed)
    histories.same_by_sums_and_spans(store, now, seed)
    assert tidy(store, now, keep_days=12, keep_usage_days=100, megabytes=1000) > 0
    fold_namespace(store, "a", 18 * DAY_MS, 25 * DAY_MS + 12_345)
    histories.same_by_sums_and_spans(store, now, seed)


@pytest.mark.parametrize("seed", range(5))
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
    with pytest.raises(ValueError, match="usage by 'team' is not known; there are queue, namespace, user"):
        usage(Store.for_writing(MEMORY), EVERYTHING, ("team",), since=0.0)


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
    gangs, _, holdings = store.open_rows()
    queues = {gang.id: gang.queue for gang in gangs}
    later = now + DAY_MS // 4
    document = tallies.document(later, [(queues[each.gang], each) for each in holdings])
    told = read_usage({KEY: msgspec.json.encode(document).decode()})
    assert (told.until, told.periods) == (later / 1000, PERIODS)
    older = msgspec.convert(msgspec.to_builtins(document), Older)
    assert {name: (each.month, each.seconds) for name, each in older.queues.items() if each.month} == {
        name: (each.month, each.seconds) for name, each in told.queues.items()
    }
    names: dict[Period, str] = {"month": "1970-01", "week": "1970-W05", "day": "1970-01-31"}
    for period, name in names.items():
        since = period_of(period, later / 1000).begin
        rows = usage(store, EVERYTHING, ("queue",), since=since, now=later / 1000)
        held = {row.key[0]: row.resources[GPU].held for row in rows}
        found = {queue: each.within(period, name)[GPU] for queue, each in told.queues.items()}
        assert found == pytest.approx(held)
        assert sum(held.values()) > 0


def test_at_midnight_the_month_goes_on_and_the_day_begins() -> None:
    """What has ended is counted once in each, whether it was read from the store or told."""
    store, now = filled(1)
    asked: list[int] = []

    def closed(begin: int) -> Totals:
        asked.append(begin)
        return closed_since(store, begin)

    tallies = Tallies(now, closed)
    assert tallies.renew(now + 1, closed) == set()
    midnight, before = now + DAY_MS, {key: each.held for key, each in tallies.of["week"].at(now, ()).items()}
    ended = Holding(
        pod="p", name="m-0", gang="gang-0", run="run-0", epoch=1, node="n", amounts={GPU: 1000},
        bound=midnight - 7000, ran_from=None, ended=midnight + 5000, reason="",
    )  # fmt: skip
    store.write(Changes(holdings={"p": ended}), {})
    begun = tallies.renew(midnight + 5000, closed)
    assert begun == {"day", "month"}  # the first of February 1970, a Sunday
    assert asked[3:] == [midnight, midnight]
    queue = queue_of(store, "gang-0")
    tallies.close(queue, ended, but=begun)
    held = {period: each.at(midnight + 5000, ())[queue, GPU].held for period, each in tallies.of.items()}
    assert held["day"] == held["month"] == 1000 * 5000
    assert held["week"] == before[queue, GPU] + 1000 * 12000


def queue_of(store: Store, gang: str) -> str:
    """The queue of a gang."""
    with store.engine.connect() as connection:
        return str(connection.scalar(select(GANGS.c.queue).where(GANGS.c.id == gang)))

"""Usage: requested, held, used and lost resources, as integrals over time.

All integrals are exact: thousandths or bytes times milliseconds.

* *requested* (field `asked`): from the creation of a PodGroup until it has ended, while it waits and while it runs.
* *held*: from the binding of each member until it has ended.
* *used*: the part of the held time after the first container of the member has started.
* *lost*: the part of the held time since the last checkpoint or, without a checkpoint, since the start. Lost time
  counts for members that were evicted, or that did not succeed before their gang restarted.

Days that were aggregated count as a whole.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Final, Literal, get_args

import msgspec

from history.integral import FOREVER, Amounts, Totals, add
from history.model import DAY_MS, EVERYTHING, MS, Scope
from history.spans import Key, ReadWindow, days_of, folded, unfolded
from history.store import HistoryStore
from muster.api.muster.usage import AHEAD_S, PERIODS, PublishedUsage, period_of
from muster.api.names import DEFAULT_QUEUE
from muster.resources.vector import unit

By = Literal["queue", "namespace", "user", "workload", "day"]
KEYS: Final[tuple[str, ...]] = get_args(By)
"""Keys by which usage can be grouped."""
FOLDED: Final = "folded-until"
"""Recorder's note: the end of the last aggregated day, in milliseconds."""
BEGAN: Final = "began"
"""Recorder's note: the creation time of the store, in milliseconds; 0 in stores of earlier versions."""
SEEN: Final = "seen-until"
"""Recorder's note: the time of the recorder's last pass, in milliseconds."""
HOUR_S: Final = 3_600
_GIB: Final = 1 << 30
_FORMULAS: Final = ("=", "+", "-", "@", "\t", "\r")
"""Characters that start a formula in a spreadsheet."""


class UsageRow(msgspec.Struct, frozen=True):
    """The usage of one key, such as a user or a queue."""

    key: tuple[str, ...]
    """The values of the grouping keys, in order; a day has the form 2026-11-26, a workload namespace/kind/name."""
    resources: dict[str, "Seconds"]


class Seconds(msgspec.Struct, frozen=True):
    """Amounts of one resource in whole units times seconds: GPU seconds, core seconds, byte seconds."""

    asked: float = 0.0
    held: float = 0.0
    used: float = 0.0
    lost: float = 0.0


def usage(
    store: HistoryStore,
    scope: Scope,
    by: Sequence[str] = ("queue", "user"),
    *,
    since: float,
    until: float | None = None,
    now: float | None = None,
    namespace: str | None = None,
    queue: str | None = None,
) -> list[UsageRow]:
    """Return the usage in [since, until) that is visible to the user, grouped by some of KEYS.

    Raises ValueError for an unknown key.

    Times are in seconds. Usage of gangs that have not ended counts until `now`, by default the time of the recorder's
    last pass.
    """
    if wrong := [each for each in by if each not in KEYS]:
        raise ValueError(f"usage cannot be grouped by {wrong[0]!r}; valid keys are {', '.join(KEYS)}")
    end = int(store.note(SEEN) or 0) if now is None else round(now * MS)
    last = end if until is None else min(end, round(until * MS))
    fields = {*by, *(("namespace", "kind", "name") if "workload" in by else ()), *(("queue",) if queue else ())}
    totals = _totals(store, ReadWindow(round(since * MS), last, scope, namespace, queue), fields)
    found: dict[tuple[str, ...], dict[str, Seconds]] = {}
    for (key, resource), amounts in totals.items():
        whole = unit(resource) * MS
        seconds = Seconds(*(each / whole for each in (amounts.asked, amounts.held, amounts.used, amounts.lost)))
        found.setdefault(tuple(_text(key, each) for each in by), {})[resource] = seconds
    return [UsageRow(key, dict(sorted(resources.items()))) for key, resources in sorted(found.items())]


def closed_since(store: HistoryStore, since: int) -> Totals[str]:
    """Return a mapping from each queue to the amounts that ended members held and used since a given midnight.

    The result is the total usage minus the usage of members that have not ended; a part of this usage may be
    aggregated.
    """
    window, by_queue = ReadWindow(since, FOREVER, EVERYTHING), ("queue",)
    totals = _totals(store, window, by_queue)
    with store.failing():
        add(totals, unfolded(store, window, by_queue, still=True), -1)
    return _by_queue(totals)


def _held_between(store: HistoryStore, since: int, until: int) -> Totals[str]:
    """Return a mapping from each queue to its held and used amounts in a period that begins at midnight."""
    return _by_queue(_totals(store, ReadWindow(since, until, EVERYTHING), ("queue",)))


def usage_before(store: HistoryStore, published: PublishedUsage, began: int, now: int) -> dict[int, Totals[str]]:
    """Return a mapping from the start of a current period to usage from before the store's creation.

    A period is in the result if it began before the store's creation and usage in it was published.

    Without a volume, the store is lost with the recorder's pod, and only the ConfigMap `muster-usage` has the usage.
    The usage is continued from the ConfigMap, because a new store must not reset budgets. `began` is the time of the
    store's creation; times are in milliseconds. Published usage whose time is in the future is ignored.
    """
    found: dict[int, Totals[str]] = {}
    until = round(published.until * MS)
    for period in PERIODS:
        running = period_of(period, now / MS)
        begin = round(running.begin * MS)
        if not begin <= until <= now + AHEAD_S * MS or began <= begin:
            continue
        known = _held_between(store, begin, until)
        unsure = _held_between(store, begin, min(began, until))
        before = {
            (queue, resource): round(seconds * unit(resource) * MS)
            for queue, usage in published.queues.items()
            for resource, seconds in usage.within(period, running.name).items()
        }
        lacks: Totals[str] = defaultdict(Amounts)
        for queue, resource in before.keys() | known.keys():  # negative if a gang has moved since then
            place = queue, resource  # unpublished usage may have been left out: what this store recorded stays
            more = before[place] - known[place].held if place in before else -unsure[place].held
            if queue and more:
                lacks[place].held = more
        if lacks:
            found[begin] = lacks
    return found


def _by_queue(totals: Totals[Key]) -> Totals[str]:
    found: Totals[str] = defaultdict(Amounts)
    for (key, resource), amounts in totals.items():
        if amounts.held:  # folded days of earlier versions have gangs without a queue
            found[key.queue or DEFAULT_QUEUE, resource].add(amounts)
    return found


def _totals(store: HistoryStore, window: ReadWindow, fields: Collection[str]) -> Totals[Key]:
    """Return the usage in the window, grouped by `fields` of the key, from aggregated days and the rows after them."""
    since = max(window.since, int(store.note(FOLDED) or 0))
    with store.failing():
        totals = unfolded(store, window._replace(since=since), fields)
        with store.engine.connect() as connection:
            add(totals, folded(connection, days_of(window), fields))
    return totals


def _text(key: Key, by: str) -> str:
    if by == "day":
        return f"{datetime.fromtimestamp(key.day * DAY_MS / MS, UTC):%Y-%m-%d}"
    if by == "workload":
        return f"{key.namespace}/{key.kind}/{key.name}"
    return str(getattr(key, by))


def is_bytewise(resource: str) -> bool:
    """Return True for a resource that is counted in bytes and shown in GiB."""
    return resource.startswith(("memory", "ephemeral-storage", "hugepages-"))


def hours(resource: str, seconds: float) -> float:
    """Convert unit-seconds to unit-hours, or to GiB-hours for resources in bytes."""
    return seconds / HOUR_S / (_GIB if is_bytewise(resource) else 1)


def cell(text: str) -> str:
    """Return a CSV cell that no spreadsheet interprets as a formula, because user names may contain anything."""
    return f"'{text}" if text.startswith(_FORMULAS) else text

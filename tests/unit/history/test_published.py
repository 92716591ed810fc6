"""What the recorder publishes for budgets is exact at its time, and with what is held since at any later one."""

from collections import defaultdict
from itertools import count
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from msgspec import structs
from recorded_lives import BOB, EVE, Lives, life
from recorder_world import Cluster, at_once, record

from history import publish, tally
from history.integral import Amounts, Totals
from history.model import MEMORY, MS, Holding
from history.pods import amounts_of
from history.publish import EVERY_S, BudgetedQueues, Publisher, UsageCounters, held
from history.recorder import HistoryRecorder
from history.store import HistoryStore
from history.tally import Tallies, spans_of
from history.usage import usage_before
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.limits import RESOURCES
from muster.api.muster.usage import (
    AGAIN_S,
    KEY,
    PERIODS,
    RESOURCES_KEPT,
    PublishedUsage,
    QueueUsage,
    period_of,
    read_usage,
)
from muster.api.volcano.scheduling import Queue, QueueSpec
from muster.kube.errors import APIError
from muster.resources.vector import GPU, Vector, unit
from muster.volcano.queuelimits import QueueLimits, limits_of

MIDNIGHT = 20_833 * 86_400 + 86_400


@pytest.fixture
def cluster() -> Cluster:
    """Two gangs, the second of which is submitted as the first one starts again, and a midnight between them."""
    w = Lives()
    life(w, EVE._replace(submitted=MIDNIGHT - 20))
    life(w, BOB._replace(submitted=MIDNIGHT))
    return Cluster(w.looks)


def published(cluster: Cluster) -> PublishedUsage:
    """What was published last."""
    content = cluster.published[-1]
    assert (content["kind"], content["metadata"]["name"]) == ("ConfigMap", "muster-usage")
    return read_usage(content["data"])


def seconds(usage: PublishedUsage, now_s: float) -> dict[tuple[str, ...], float]:
    """Amounts by period, queue and resource."""
    return {
        (period, name, resource): amount
        for period in PERIODS
        for name, queue in usage.queues.items()
        for resource, amount in queue.within(period, period_of(period, now_s).name).items()
    }


def test_readers_add_what_is_held_since(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Published or left as it is, with what is held since the sum is that of now, whatever has begun or ended."""
    at_once(monkeypatch)
    monkeypatch.setattr(publish, "EVERY_S", 0)
    publisher = Publisher(cluster, "system", lambda: cluster.now_ms / MS)  # type: ignore[arg-type]  # as Client

    def changed(recorder: HistoryRecorder) -> None:
        publisher.changed(recorder)
        usage, now_s = published(cluster), cluster.now_ms / MS
        found = seconds(usage, now_s)
        for span in held(recorder):
            for resource, amount in span.amounts.items():
                for period in PERIODS:
                    key = period, span.key, resource
                    found[key] = found.get(key, 0) + amount / unit(resource) * (now_s - usage.until)
        found = {key: amount for key, amount in found.items() if amount}
        assert recorder.tallies is not None
        document = recorder.tallies.document(cluster.now_ms, held(recorder))
        expected = seconds(read_usage({KEY: publish.msgspec.json.encode(document).decode()}), now_s)
        assert found == pytest.approx(expected, abs=0.01)

    record(cluster, HistoryStore.for_writing(MEMORY), len(cluster.looks), changed=changed)
    assert len(cluster.published) < len(cluster.looks) / 2


def test_it_is_written_when_that_is_due(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten seconds after the last time if something has changed, five minutes after it if not."""
    at_once(monkeypatch)
    now_s, store = cluster.now_ms / MS, HistoryStore.for_writing(MEMORY)
    first = record(cluster, store)
    bound = next(number for number, look in enumerate(cluster.looks, 1) if look.uid == EVE.pod)
    later = record(cluster, store, bound)
    publisher = Publisher(cluster, "system", lambda: now_s)  # type: ignore[arg-type]  # as Client
    written = []
    for recorder, after_s in (
        (first, 0.0), (later, EVERY_S - 1), (later, 1.0), (later, EVERY_S), (later, AGAIN_S - EVERY_S),
    ):  # fmt: skip
        now_s += after_s
        publisher.changed(recorder)
        written.append(len(cluster.published))
    assert written == [1, 1, 2, 2, 3]


@pytest.mark.parametrize("before", [8, 14, 40])
def test_an_empty_store_takes_over_what_was_published(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    """Of the running periods, with what still runs; in the end it is what a store says that has lasted."""
    at_once(monkeypatch)
    new = HistoryStore.for_writing(MEMORY)

    def recorded(of: Cluster, store: HistoryStore, until: int | None = None) -> dict[tuple[str, ...], float]:
        publisher = Publisher(of, "system", lambda: of.now_ms / MS)  # type: ignore[arg-type]  # as Client
        publisher.changed(record(of, store, until, published=publisher.published))
        return seconds(published(of), of.now_ms / MS)

    known = recorded(cluster, HistoryStore.for_writing(MEMORY), before)
    for _ in range(2):
        assert recorded(cluster, new) == pytest.approx(known, abs=0.01)
    lasting = recorded(Cluster(cluster.looks), HistoryStore.for_writing(MEMORY), len(cluster.looks))
    assert recorded(cluster, new, len(cluster.looks)) == pytest.approx(lasting, abs=0.6)


@pytest.mark.parametrize(("hours_old", "of_c"), [(0, -5), (5, None)])
def test_a_gang_that_moved_before_the_store_began_is_charged_once(
    monkeypatch: pytest.MonkeyPatch, hours_old: int, of_c: int | None
) -> None:
    """A new store charges its present queue from its binding on; what it had held in the other one is taken off.

    Nothing of what the store recorded since it began is, though nothing of queue c was published.
    """
    now_s = 1_800_000_000.0
    month, hour = period_of("month", now_s), 3600.0
    queues = {name: QueueUsage(month.name, {GPU: hours * hour}) for name, hours in (("a", 10), ("b", 2))}
    whole, now = round(hour * unit(GPU) * MS), round(now_s * MS)

    def held_between(_: HistoryStore, begin: int, until: int) -> Totals[str]:
        assert begin < until
        return defaultdict(Amounts, {("b", GPU): Amounts(held=12 * whole)} | recorded if until == now else {})

    recorded = {("c", GPU): Amounts(held=5 * whole)}
    monkeypatch.setattr("history.usage._held_between", held_between)
    store, began = HistoryStore.for_writing(MEMORY), now - round(hours_old * hour * MS)
    lacks = usage_before(store, PublishedUsage(now_s, queues), began, now)
    found = {queue: each.held / whole for (queue, _), each in lacks[round(month.begin * MS)].items()}
    assert found == {"a": 10, "b": -10} | ({"c": of_c} if of_c else {})


def test_no_budget_begins_at_nothing_while_the_published_cannot_be_read(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recorder waits for it; what is no usage is not taken over."""
    at_once(monkeypatch)
    publisher = Publisher(cluster, "system", lambda: cluster.now_ms / MS)  # type: ignore[arg-type]  # as Client
    assert publisher.published() is None
    asked: list[bool] = []

    def fails_once() -> PublishedUsage | None:
        asked.append(True)
        if len(asked) == 1:
            raise APIError("no answer")
        return publisher.published()

    record(cluster, HistoryStore.for_writing(MEMORY), published=fails_once)
    assert len(asked) == 2
    cluster.published.append({"data": {KEY: "{"}})
    assert publisher.published() is None


def test_what_could_not_be_written_is_tried_again(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not at once, and not only when something changes."""
    at_once(monkeypatch)
    now_s, recorder = cluster.now_ms / MS, record(cluster, HistoryStore.for_writing(MEMORY))
    publisher = Publisher(cluster, "system", lambda: now_s)  # type: ignore[arg-type]  # as Client
    cluster.silent = range(cluster.now_ms, cluster.now_ms + 1)
    publisher.changed(recorder)
    cluster.silent = range(0)
    now_s += EVERY_S - 1
    publisher.changed(recorder)
    assert cluster.published == []
    now_s += 1
    publisher.changed(recorder)
    assert published(cluster).until == now_s


NAMES = [f"a{number}.example/thing" for number in range(1_000)]
FPGA = "z.example/fpga"


def pods_with(amounts: Vector, *queues: str) -> list[Holding]:
    """A pod in each of these queues that holds these amounts."""
    return [
        Holding(pod=queue, name="p", gang="g", run="r", queue=queue, epoch=1, node="n", amounts=amounts, bound=0)
        for queue in queues
    ]


def test_a_tenant_with_a_thousand_resources_does_not_affect_others() -> None:
    """Budgets' and standard resources stay, in the published usage and in metrics; other queues are unchanged."""
    asked = dict.fromkeys(NAMES, 1) | {GPU: 1000, FPGA: 1, "cpu": 1000}
    holdings = {each.pod: each for each in pods_with(asked, "evil", "not-there") + pods_with({GPU: 1000}, "good")}
    budgeted = {"evil": frozenset({FPGA}), "good": frozenset({GPU})}
    tallies = Tallies(10 * MS, lambda _: defaultdict(Amounts), lambda: budgeted)
    recorder: Any = SimpleNamespace(tallies=tallies, entries=SimpleNamespace(holdings=holdings))
    usage = read_usage({KEY: msgspec.json.encode(tallies.document(10 * MS, held(recorder))).decode()})
    assert usage.queues["good"].seconds == {GPU: 10}
    assert {FPGA, GPU, "cpu"} <= usage.queues["evil"].seconds.keys()
    assert len(usage.queues["evil"].seconds) == RESOURCES_KEPT + 1
    assert (usage.queues.keys(), usage.left_out) == ({"evil", "good"}, ())
    series = [each for family in UsageCounters(recorder, lambda: 10).collect() for each in family.samples]
    assert len(series) == 2 * (RESOURCES_KEPT + 2)
    unread = Tallies(10 * MS, lambda _: defaultdict(Amounts)).document(10 * MS, held(recorder))
    assert FPGA in unread["queues"]["evil"]["seconds"], "any resource may have a budget, and none is cut silently"


def test_a_tally_forgets_names_that_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if users invent new ones for months; usage that budgets count stays exact."""
    monkeypatch.setattr(tally, "_ENTRIES", 100)
    kept = tally.Tally(0, defaultdict(Amounts), lambda: {"evil": frozenset({FPGA})})
    for number in range(2_000):
        ended = pods_with({f"a{number}.example/thing": 1, FPGA: 1}, "evil", f"q{number}")
        kept.close(spans_of(structs.replace(each, ended=1) for each in ended))
        assert len(kept._closed) <= 104
    assert kept.at(0, [])["evil", FPGA].held == 2_000


@pytest.mark.parametrize("end", ["", '"' * 60])
def test_a_queue_that_does_not_fit_is_left_out_and_named(cluster: Cluster, end: str) -> None:
    """Never with less than it has used; and what all others have used is there. Names without space are counted."""
    queues = {f"queue-{number:05}{end}": frozenset({GPU}) for number in range(4_000)}
    tallies = Tallies(10 * MS, lambda _: defaultdict(Amounts), lambda: queues)
    holdings = {each.pod: each for each in pods_with({GPU: 1000, "cpu": 1}, *queues)}
    recorder: Any = SimpleNamespace(tallies=tallies, entries=SimpleNamespace(holdings=holdings))
    Publisher(cluster, "system", lambda: 10).changed(recorder)  # type: ignore[arg-type]  # as Client
    usage = published(cluster)
    there = {name for name, each in usage.queues.items() if each.seconds[GPU] == 10}
    assert publish.LEFT_OUT._value.get() == len(queues) - len(there) > 0
    assert usage.left_out == (("",) if end else (*sorted(queues.keys() - there),))


def test_the_recorder_knows_what_budgets_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each queue its own and those above it, whatever Queues come, change and go, also while it makes the answer."""
    queues = BudgetedQueues(None)  # type: ignore[arg-type]  # never started
    mirror = queues._reflector.mirror
    assert queues.resources() is None
    queues._reflector.first.set()
    versions = count(1)

    def queue(name: str, parent: str = "", **annotations: str) -> Queue:
        said = {f"muster.dev/{key}": text for key, text in annotations.items()}
        meta = ObjectMeta(name=name, annotations=said, resource_version=str(next(versions)))
        return Queue(metadata=meta, spec=QueueSpec(parent=parent))

    above, below = queue("above", "round", budget=f"{GPU}=1h/day"), queue("below", "above", budget="cpu=1h/day")
    for new in (queue("root", budget="memory=1h/day"), above, below, queue("round", "above")):
        mirror.add_object(new)
    assert queues.resources() == {
        "root": {"memory"}, "above": {GPU, "memory"}, "below": {GPU, "cpu", "memory"}, "round": {GPU, "memory"},
    }  # fmt: skip
    mirror.add_object(queue("above"))
    mirror.remove("below")
    assert queues.resources() == {"root": {"memory"}, "above": {"memory"}, "round": {"memory"}}
    mirror.remove("round")
    came = list[bool]()

    def limits(annotations: dict[str, str]) -> QueueLimits:
        if not came and not queues._lock.locked():
            came.append(True)
            mirror.add_object(queue("late"))
        return limits_of(annotations)

    monkeypatch.setattr(publish, "limits_of", limits)
    queues.resources()
    if not came:
        mirror.add_object(queue("late"))
    assert "late" in (queues.resources() or {})


def test_a_pod_counts_as_many_resources_as_admission_allows() -> None:
    """The usual ones first, of a pod that no admission has seen."""
    resources = {"requests": dict.fromkeys([*NAMES, GPU, "cpu"], "1")}
    spec = {"schedulerName": "muster", "containers": [{"name": "c", "resources": resources}]}
    amounts = amounts_of(msgspec.convert({"metadata": {"name": "p"}, "spec": spec}, Pod))
    assert len(amounts) == RESOURCES.value
    assert {GPU, "cpu", "pods"} <= amounts.keys()

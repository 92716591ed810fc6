"""What the recorder publishes for budgets is exact at its time, and with what is held since at any later one."""

from collections import defaultdict

import pytest
from recorded_lives import BOB, EVE, Lives, life
from recorder_world import Cluster, at_once, record

from history import publish
from history.carried import carried
from history.integral import Amounts, Totals
from history.model import MEMORY, MS
from history.publish import EVERY_S, Publisher, held
from history.recorder import HistoryRecorder
from history.store import HistoryStore
from muster.api.muster.usage import AGAIN_S, KEY, PERIODS, PublishedUsage, QueueUsage, period_of, read_usage
from muster.kube.errors import APIError
from muster.resources.vector import GPU, unit

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


def test_a_gang_that_moved_before_the_store_began_is_charged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new store charges its present queue from its binding on; what it had held in the other one is taken off."""
    now_s = 1_800_000_000.0
    month, hour = period_of("month", now_s), 3600.0
    queues = {name: QueueUsage(month.name, {GPU: hours * hour}) for name, hours in (("a", 10), ("b", 2))}
    known: Totals[str] = defaultdict(Amounts, {("b", GPU): Amounts(held=round(12 * hour * unit(GPU) * MS))})
    monkeypatch.setattr("history.carried.held_between", lambda *_: known)
    store = HistoryStore.for_writing(MEMORY)
    lacks = carried(store, PublishedUsage(now_s, queues), round(now_s * MS), round(now_s * MS))
    found = {queue: each.held for (queue, _), each in lacks[round(month.begin * MS)].items()}
    assert found == {"a": round(10 * hour * unit(GPU) * MS), "b": -round(10 * hour * unit(GPU) * MS)}


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

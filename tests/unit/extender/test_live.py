"""The state belongs to one loop: threads ask there, and who waits for a change is told. Caches say what they lack."""

import asyncio
import gc
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import msgspec
import pytest
from builders import placement, pod_group

from extender import cluster as module
from extender.cluster import Live, LiveCluster, settle
from extender.planner.state.feed import FEED
from extender.planner.state.state import PlannerState
from muster.api.kubernetes.core import PODS as PODS_
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.devices import RESOURCE_CLAIMS, ResourceClaim
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.kubernetes.quota import RESOURCE_QUOTAS
from muster.api.muster.placement import PLACEMENTS, Placement
from muster.api.volcano.batch import Job, JobSpec, TaskSpec
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube import readable
from muster.kube.client import Client
from muster.kube.config import ClientConfig
from muster.kube.memorylimit import weight_of
from muster.kube.reflector import Reflector

pytestmark = pytest.mark.anyio

LONGEST_S = 20.0
NO_SERVER = "http://127.0.0.1:1"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PODS = 100
FED = {fed.resource: fed for fed in FEED}


@pytest.fixture
def woken() -> list[int]:
    """How often the planner was woken."""
    return []


@pytest.fixture
async def live(woken: list[int]) -> Live:
    """A state that belongs to the running loop."""
    made = Live(PlannerState(), wake=lambda _: woken.append(1))
    made.run_here()
    return made


async def test_a_thread_asks_on_the_loop(live: Live) -> None:
    """The question runs in the loop's thread, and its answer comes back; so does what it raises."""
    home = threading.get_ident()
    assert await asyncio.to_thread(live.ask, lambda _: threading.get_ident()) == home
    with pytest.raises(KeyError):
        await asyncio.to_thread(live.ask, lambda state: state.pods["nobody"])
    assert live.ask(lambda _: threading.get_ident()) == home  # there, it is a plain call


@pytest.mark.parametrize(("matters", "count"), [(True, 1), (False, 0), (None, 1)])
async def test_the_planner_is_woken_at_need(live: Live, woken: list[int], count: int, *, matters: bool | None) -> None:
    """A change that says nothing counts as one from which something follows."""
    live.change(lambda _: matters)
    assert len(woken) == count


async def test_who_waits_sees_every_change(live: Live) -> None:
    """Also one that does not wake the planner, and one that a thread makes."""
    steps: list[str] = []

    def step(who: str, _: PlannerState) -> bool:
        steps.append(who)
        return False

    waiting = asyncio.ensure_future(live.until(lambda: len(steps) >= 2, timeout_s=60))
    await asyncio.sleep(0)
    live.change(partial(step, "loop"))
    await asyncio.to_thread(live.change, partial(step, "thread"))
    assert await waiting
    assert await live.until(lambda: True, timeout_s=0)
    assert not await live.until(lambda: False, timeout_s=0.01)
    assert not live._waiting


def test_a_loop_that_has_ended_is_an_error() -> None:
    """Whoever asks it would wait for ever."""
    live = Live(PlannerState(), wake=lambda _: None)

    async def run() -> None:
        live.run_here()

    asyncio.run(run())
    with pytest.raises(RuntimeError, match="closed"):
        live.ask(lambda _: None)


@pytest.fixture
async def cluster(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Caches without an API server, and small slices of comparisons."""
    monkeypatch.setattr(module, "COMPARISONS", 10)
    monkeypatch.setattr(module, "SLICE_COMPARISONS", 500)
    monkeypatch.setattr(readable, "PATIENCE_S", 0.0)
    client, woken = Client(ClientConfig(NO_SERVER), loop=asyncio.get_running_loop()), asyncio.Event()
    made: Any = LiveCluster(client, wake=lambda _: woken.set())
    made.woken = woken
    yield made
    client.close()


def pod(name: str, terms: list[dict[str, Any]] | None = None) -> Pod:
    """A pod of Muster's."""
    meta = {"name": name, "namespace": "ns", "uid": name, "resourceVersion": "1"}
    spec = {"schedulerName": "muster", "affinity": {"podAntiAffinity": {REQUIRED: terms or []}}}
    return msgspec.convert({"metadata": meta, "spec": spec}, Pod)


async def test_new_affinities_are_compared_in_slices(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is ready once those of its first pods are, and the planner is woken."""
    monkeypatch.setattr(Reflector, "synced", True)
    state, slices = cluster.state, []
    for number in range(PODS):
        state.on_pod(None, pod(f"p{number}"))
    state.on_pod(None, pod("asks", [{"topologyKey": "zone", "labelSelector": {}}]))
    assert not cluster.synced
    assert cluster.not_ready() == "affinities are still compared with the pods of the cluster"
    assert not cluster.woken.is_set()
    compare = state.compare

    def counted(looks: int) -> bool:
        slices.append(looks)
        return bool(compare(looks))

    monkeypatch.setattr(state, "compare", counted)
    async with asyncio.timeout(LONGEST_S):
        await cluster.woken.wait()
    assert cluster.synced
    assert cluster.not_ready() is None
    assert all(len(record.cls.matched) == 1 for record in state.pods.values())
    assert len(slices) > 1


async def test_the_kinds_that_were_never_read_are_named(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """And why, since when, once that is longer than an API server needs to restart."""
    assert cluster.not_ready() == f"the caches are not filled yet: {', '.join(cluster.sizes())}"
    cluster.start()
    async with asyncio.timeout(LONGEST_S):
        while "resourceclaims cannot be read since " not in (cluster.not_ready() or ""):  # noqa: ASYNC110 - nothing else says it
            await asyncio.sleep(0.01)
    stop, stopped = Reflector.stop, []

    def stops(reflector: Any) -> None:
        stopped.append(reflector)
        stop(reflector)

    monkeypatch.setattr(Reflector, "stop", stops)
    cluster.stop()
    assert {each for each in cluster._reflectors.values() if isinstance(each, Reflector)} <= {*stopped}


async def test_caches_are_filled_when_no_node_is_held_back(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its pods are being listed; a node that comes later is planned as soon as they are, and the rest meanwhile."""
    monkeypatch.setattr(Reflector, "synced", False)
    assert not cluster.synced
    monkeypatch.setattr(Reflector, "synced", True)
    cluster._pool._coming["node"] = None
    assert not cluster.synced
    cluster._pool._coming.clear()
    assert cluster.synced
    cluster._pool._coming["node"] = None
    assert cluster.synced
    cluster._pool._coming.clear()


def test_of_a_large_job_only_what_is_planned_has_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a usual one all of it, which is known sooner."""
    spec = {"containers": [{"name": "main", "image": "x" * 1_000, "args": ["y" * 1_000]}]}
    job = Job(spec=JobSpec(tasks=[TaskSpec(name="worker", replicas=1, template={"spec": spec})]))
    whole = weight_of(job)
    for usual, planned in ((whole, False), (whole - 1, True)):
        monkeypatch.setattr(module, "_USUAL_JOB_BYTES", usual)
        assert (module._planned_weight_of(job) < whole) is planned


def test_kinds_that_tenants_create_have_a_memory_limit() -> None:
    """All but those that must be counted, of which the caches keep the names; tenants create no quotas."""
    counted = {PODS_, RESOURCE_CLAIMS}
    assert all(kind in module._KEEP for kind in counted)
    limited = {fed.resource for fed in FEED if module._budget_of(fed) is not None}
    assert {fed.resource for fed in FEED if fed.resource.namespaced} - limited == {
        *counted, RESOURCE_QUOTAS, PLACEMENTS,
    }  # fmt: skip
    claim = ResourceClaim(metadata=ObjectMeta(name="a", annotations={"x": "y"}))
    assert module._KEEP[RESOURCE_CLAIMS](claim) == ResourceClaim(metadata=ObjectMeta(name="a"))


@pytest.fixture
def thawed() -> Iterator[Callable[[], int]]:
    """The number of frozen objects, which are let go in the end."""
    yield gc.get_freeze_count
    gc.unfreeze()


async def test_what_is_there_when_the_caches_are_filled_is_frozen(thawed: Callable[[], int]) -> None:
    """The garbage collector leaves alone what the caches hold, once they are filled and not before."""
    before, looks = thawed(), []

    def filled() -> bool:
        looks.append(thawed())
        return len(looks) == 3

    await settle(filled, poll_s=0.0)
    assert looks == [before] * 3
    assert thawed() > before


@pytest.mark.parametrize(("change", "namespace"), [
    ((None, placement("g")), None),
    ((placement("g"), None), "ns"),
    ((None, pod_group("g")), "ns"),
    ((pod_group("g"), pod_group("g", phase="Running", version="2")), None),
    ((pod_group("g"), pod_group("g", queue="research", version="2")), "ns"),
    ((pod_group("g"), pod_group("g", labels={"a": "b"}, version="2")), "ns"),
    ((pod_group("g"), pod_group("g", deleted="2026-01-01T00:00:00Z", version="2")), "ns"),
    ((pod_group("g"), pod_group("g", uid="another", version="2")), "ns"),
    ((pod_group("g"), None), "ns"),
])  # fmt: skip
async def test_changes_that_muster_has_written_are_charged_to_no_namespace(
    change: tuple[Any, Any], namespace: str | None
) -> None:
    """They end no pause of the planner: their cycle has taken them into account; what users change ends one."""
    woken: list[str | None] = []
    client = Client(ClientConfig(NO_SERVER), loop=asyncio.get_running_loop())
    made = LiveCluster(client, wake=woken.append)
    kind = PLACEMENTS if isinstance(change[0] or change[1], Placement) else POD_GROUPS
    if change[0] is not None:
        made._handler_of(FED[kind])(None, change[0])
        woken.clear()
    made._handler_of(FED[kind])(*change)
    client.close()
    assert woken == [namespace]

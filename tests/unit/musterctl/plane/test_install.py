"""What a plane's cluster must hold, and how its parts are waited for and watched."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec
import pytest
from builders import node
from loopback_server import Loopback, serving

from muster.api.kubernetes.core import NODES
from muster.api.kubernetes.extensions import DEFINITIONS, WEBHOOK_CONFIGURATIONS, CustomResourceDefinition
from muster.api.volcano.scheduling import QUEUES, Queue
from muster.kube.errors import AlreadyExists, Conflict, NotFound, TooManyRequests
from musterctl.plane import health, install, supervisor
from musterctl.plane.machine import LocalError
from musterctl.plane.state import PlaneOptions


class Api:
    """Notes what is sent; answers, or errors, come from `answers`, the last one again and again."""

    def __init__(self, *answers: Any, there: Any = ()) -> None:
        self.answers = [*answers]
        self.there = there
        self.sent: list[tuple[str, str, str]] = []

    def _next(self, verb: str, resource: Any, name: str) -> Any:
        self.sent.append((verb, resource.kind, name))
        answer = (self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]) if self.answers else None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def apply(self, resource: Any, manifest: Any, *, force: bool = True) -> Any:
        """As a client."""
        assert force or resource.kind == "ClusterTrainingRuntime"
        return self._next("apply", resource, manifest["metadata"]["name"])

    def create(self, resource: Any, manifest: Any) -> Any:
        """As a client."""
        return self._next("create", resource, manifest["metadata"]["name"])

    def delete(self, resource: Any, name: str) -> Any:
        """As a client."""
        return self._next("delete", resource, name)

    def get(self, resource: Any, name: str) -> Any:
        """As a client."""
        return self._next("get", resource, name)

    def list(self, resource: Any) -> Any:
        """As a client."""
        assert resource is NODES
        return self.there


def api(*answers: Any, there: Any = ()) -> Any:
    """That client."""
    return Api(*answers, there=there)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that goes on by what is slept, which it notes."""
    slept = [0.0]

    def sleep(seconds: float) -> None:
        slept.append(seconds)

    for module in (install, health):
        monkeypatch.setattr(module.time, "sleep", sleep)
        monkeypatch.setattr(module.time, "monotonic", lambda: sum(slept))
    return slept


@pytest.mark.parametrize(("count", "runs"), [(8, 2), (7, 3), (5, 5), (3, 1)])
def test_nodes_are_in_equal_runs(count: int, runs: int) -> None:
    """Each rack has as many nodes as the others, or one more, and its nodes follow one another."""
    found = install.node_objects(PlaneOptions(nodes=count, racks=runs, blocks=1, pool=("b",), gpus=4), 10250)
    racks = [each["metadata"]["labels"]["muster.dev/rack"] for each in found]
    assert racks == sorted(racks)
    sizes = [racks.count(f"rack-{number}") for number in range(runs)]
    assert (sum(sizes), max(sizes) - min(sizes) <= 1) == (count, True)
    pools = [each["metadata"]["labels"].get("muster.dev/node-pool") for each in found]
    assert pools == [None] * ((count + 1) // 2) + ["b"] * (count // 2)
    assert [each["metadata"]["name"] for each in found] == [f"node-{number:04}" for number in range(count)]
    status = found[0]["status"]
    assert status["capacity"] == status["allocatable"]
    assert (status["allocatable"]["nvidia.com/gpu"], status["allocatable"]["cpu"]) == ("4", "32")
    assert status["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 10250}}
    assert {each["address"] for each in status["addresses"]} == {"node-0000", "127.0.0.1"}


def test_a_node_without_gpus_offers_none() -> None:
    """Not even none of them."""
    (one,) = install.node_objects(PlaneOptions(nodes=1, racks=1, gpus=0))
    assert "nvidia.com/gpu" not in one["status"]["allocatable"]


def test_nodes_that_are_missing_are_made() -> None:
    """One that another process makes meanwhile is as good."""
    client = api(AlreadyExists("it is there"), there=[node("node-0001")])
    install.nodes(client, PlaneOptions(nodes=3, racks=1), 1)
    assert sorted(client.sent) == [("create", "Node", "node-0000"), ("create", "Node", "node-0002")]


def test_nodes_say_if_they_are_ready() -> None:
    """Either way; one that says nothing is waited for."""
    silent = node("b")
    silent.status.conditions.clear()
    assert install.unknown_nodes(api(there=[node("a"), silent])) == "of 2 nodes 1 does not report a Ready condition yet"
    assert install.unknown_nodes(api(there=[node("a", ready=False)])) == ""


@pytest.mark.parametrize(
    ("answer", "trouble"),
    [("Open", ""), ("Closed", "the queue default is not open"), (None, "there is no queue default")],
)
def test_the_default_queue_is_waited_for(answer: str | None, trouble: str) -> None:
    """The controller makes and opens it."""
    state = NotFound("none") if answer is None else msgspec.convert({"status": {"state": answer}}, Queue)
    client = api(state)
    assert install.closed_queue(client) == trouble
    assert client.sent == [("get", QUEUES.kind, "default")]


def test_a_runtime_is_applied_until_it_is_taken(clock: list[float]) -> None:
    """The API server prepares for a new kind; what another manager has changed stays; late is too late."""
    client = api(TooManyRequests("soon"), TooManyRequests("soon"), None, Conflict("it is helm's"))
    install.runtimes(client)
    assert len(clock) == 3
    assert len(client.sent) == len([*install.RUNTIMES.glob("*.yaml")]) + 2
    with pytest.raises(LocalError, match=r"the API server does not accept .*: its storage is not ready"):
        install.runtimes(api(TooManyRequests("soon")))
    assert 30 < sum(clock[3:]) < 30.2


def test_the_version_of_trainer_is_readable() -> None:
    """In the namespace where its SDK looks; what is there stays."""
    for client in api(), api(AlreadyExists("it is there")):
        install.trainer_version(client)
        space, version, *_ = client.sent
        assert space == ("create", "Namespace", install.TRAINER_NAMESPACE)
        assert version[:2] == ("create", "ConfigMap")


def definition(*, served: bool) -> CustomResourceDefinition:
    """A CRD in the cluster."""
    condition = {"type": "Established", "status": str(served), "message": "names clash", "reason": "r"}
    return msgspec.convert(
        {"metadata": {"name": "x"}, "spec": {}, "status": {"conditions": [condition]}}, CustomResourceDefinition
    )


def test_crds_are_waited_for(clock: list[float]) -> None:
    """Until all are served; what the API server says of those that are not is told."""
    count = len([*install.CRDS.glob("*.yaml")])
    client = api(*[definition(served=True)] * (count - 1), definition(served=False), definition(served=True))
    install.crds(client)
    assert [each[0] for each in client.sent] == ["apply"] * count + ["get"]
    assert len(clock) == 2
    assert all(each[1] == DEFINITIONS.kind for each in client.sent)
    with pytest.raises(LocalError, match=r"does not serve .*muster\.dev \(Established: names clash\)"):
        install.crds(api(definition(served=False)))


def test_webhooks_go_where_they_are() -> None:
    """Both kinds, though one is not there."""
    client = api(NotFound("none"))
    install.remove_webhooks(client)
    assert client.sent == [("delete", kind.kind, "muster") for kind in WEBHOOK_CONFIGURATIONS]


def test_kinds_have_their_plurals() -> None:
    """By the API's rule."""
    sent: list[Any] = []

    class Paths(Api):
        def apply(self, resource: Any, manifest: Any, *, force: bool = True) -> None:
            sent.append((resource.path(manifest["metadata"].get("namespace")), force))

    kinds = [("v1", "ConfigMap", "ns"), ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "")]
    objects: Any = [
        {"apiVersion": api, "kind": kind, "metadata": {"name": "x", **({"namespace": space} if space else {})}}
        for api, kind, space in kinds
    ]
    install.apply(Paths(), objects)  # type: ignore[arg-type] # as a client
    assert sorted(sent) == [
        ("/api/v1/namespaces/ns/configmaps", True),
        ("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies", True),
    ]


class Part:
    """A process that dies after so many looks, unless it is started again."""

    def __init__(self, lives: int) -> None:
        self.name, self.log_file, self.lives, self.starts = "extender", "extender.log", lives, 0
        self.started = True

    @property
    def alive(self) -> bool:
        """While it is."""
        self.lives -= 1
        return self.lives >= 0

    def death(self) -> LocalError:
        """What is said of it."""
        return LocalError("extender has died")

    def log_tail(self) -> str:
        """Its last words."""
        return "the end"

    def start(self) -> None:
        """Note it; it dies again."""
        self.starts += 1
        if self.starts == 2:
            raise LocalError("there is no such program")


def test_a_part_is_waited_for(clock: list[float]) -> None:
    """Until it is ready, dies, or is late."""
    answers = ["no answer", "no answer", ""]
    health.wait_until(Part(9), lambda: answers.pop(0), 1.0)  # type: ignore[arg-type] # as a part
    assert (answers, len(clock)) == ([], 3)
    with pytest.raises(LocalError, match="extender has died"):
        health.wait_until(Part(1), lambda: "no answer", 1.0)  # type: ignore[arg-type] # as a part
    late = "extender is not ready after 1 s (no answer). The end of extender.log:\nthe end"
    with pytest.raises(LocalError) as caught:
        health.wait_until(Part(99), lambda: "no answer", 1.0)  # type: ignore[arg-type] # as a part
    assert str(caught.value) == late


def test_what_dies_is_started_again(clock: list[float]) -> None:
    """After growing delays, despite errors; stopped processes stay stopped; tokens are renewed every half hour."""
    part, told, renewed = Part(5), list[str](), list[float]()

    def report(text: str) -> None:
        told.append(f"{sum(clock):.0f}: {text}")

    def renew() -> None:
        renewed.append(sum(clock))
        if len(renewed) == 2:
            raise InterruptedError

    parts: Any = {"extender": part}
    with pytest.raises(InterruptedError):
        supervisor.supervise(parts, report, renew, nullcontext)
    assert renewed == [1801, 3602]
    assert told.pop(2) == "17: extender cannot be started: there is no such program"
    times = (6, 17, 38, 79, 160, 321, 622, 923)
    assert told[:8] == [f"{second}: extender has died\nstarting extender again" for second in times]
    assert part.starts == len(told)
    part.started = False
    supervisor.supervise(parts, report, renew, nullcontext, iter([True, True, False]).__next__)
    assert part.starts == len(told)


@pytest.mark.parametrize(("status", "trouble"), [(200, ""), (503, "not yet")])
def test_trouble_is_what_the_url_says(tmp_path: Path, status: int, trouble: str) -> None:
    """Nothing if it answers 200."""
    paths: list[str] = []

    class Handler(Loopback):
        def reply(self) -> None:
            paths.append(self.path)
            self.answer({"kind": "Status", "message": "not yet"}, status)

    with serving(Handler, tmp_path / "kubeconfig"):
        url = (tmp_path / "kubeconfig").read_text().partition("server: ")[2].split()[0]
        assert trouble in health.trouble_at(f"{url}/readyz", tmp_path)
        assert bool(health.trouble_at(f"{url}/readyz", tmp_path)) is bool(trouble)
    assert paths == ["/readyz"] * 2

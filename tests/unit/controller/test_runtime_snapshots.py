"""A snapshot of a TrainJob's runtime is believed only with the digest that stands in the TrainJob's status."""

from collections.abc import Callable
from contextlib import closing
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from frameworks_world import runtime, train_job

from controller.trainjob.obstacle import Obstacle
from controller.trainjob.runtimes import KEY, RuntimeFinder, digest, snapshot_name
from muster.api.kubeflow.trainer import TRAIN_JOBS, RuntimeRef, TrainJob, TrainJobSpec
from muster.api.kubeflow.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from muster.api.kubernetes.meta import Object, ObjectMeta
from muster.kube.client import Client
from muster.kube.config import ClientConfig
from muster.kube.errors import AlreadyExists, NotFound, Undecodable
from muster.kube.events import EventWriter
from muster.kube.store import ObjectStore
from muster.workloads.adapter import Owner

JSON = dict[str, Any]
ADMITTED, FORGED = 2, 16
"""Nodes of the runtime in the cluster, and of one that somebody has put into the ConfigMap."""


def text(nodes: int) -> str:
    """A runtime of so many nodes, as a snapshot has it."""
    return msgspec.json.encode(runtime({"numNodes": nodes})).decode()


class Cluster:
    """An API server with the runtime of `ADMITTED` nodes, and at most one ConfigMap."""

    def __init__(self, job: TrainJob, snapshot: str) -> None:
        self.maps = ObjectStore[Object]()
        self.written: list[str] = []
        reference = Owner.from_meta(TRAIN_JOBS, job.metadata).reference()
        meta = {"name": snapshot_name("train"), "namespace": "team", "uid": "c", "ownerReferences": [reference]}
        self._map: JSON | None = {"metadata": meta, "data": {KEY: snapshot}}
        self.maps.add_object(Object(metadata=msgspec.convert(meta, ObjectMeta)))

    def get(self, resource: Any, *_: object) -> Any:
        """The runtime, or the ConfigMap."""
        if resource.kind == CLUSTER_TRAINING_RUNTIMES.kind:
            return msgspec.json.decode(text(ADMITTED))
        if self._map is None:
            raise NotFound("it is gone")
        return msgspec.convert(self._map, resource.type)

    def create(self, _: Any, manifest: JSON) -> None:
        """Keep a ConfigMap, if there is none."""
        if self._map is not None:
            raise AlreadyExists("it is there")
        self._map = manifest
        self.written.append(manifest["data"][KEY])

    def delete(self, *_: object, uid: str) -> None:
        """Delete the ConfigMap."""
        assert uid == "c"
        self._map = None


@pytest.fixture
def found() -> Callable[[str, str], tuple[int, Cluster]]:
    """The nodes of the runtime that a TrainJob has, by the digest in its status and the text of its ConfigMap."""

    def look(status: str, snapshot: str) -> tuple[int, Cluster]:
        job = train_job()
        job.status.runtime_digest = status
        cluster = Cluster(job, snapshot)
        recorder = cast("Any", SimpleNamespace(event=lambda *_: None))
        policy = RuntimeFinder(cast("Any", cluster), recorder, cluster.maps).runtime_of(job).spec.ml_policy
        assert policy is not None
        assert policy.num_nodes is not None
        return policy.num_nodes, cluster

    return look


def test_one_with_the_digest_of_the_status_is_the_runtime(found: Callable[[str, str], tuple[int, Cluster]]) -> None:
    """The runtime in the cluster may have changed since."""
    nodes, cluster = found(digest(text(FORGED)), text(FORGED))
    assert (nodes, cluster.written) == (FORGED, [])


def test_one_that_no_status_vouches_for_is_made_anew(found: Callable[[str, str], tuple[int, Cluster]]) -> None:
    """Somebody may have made it before the controller's first pass."""
    nodes, cluster = found("", text(FORGED))
    assert nodes == ADMITTED
    [written] = cluster.written
    assert msgspec.json.decode(written) == msgspec.json.decode(text(ADMITTED))


def test_one_with_another_digest_stops_the_train_job(found: Callable[[str, str], tuple[int, Cluster]]) -> None:
    """It was changed; the message has the remedy."""
    with pytest.raises(Obstacle, match=r"was changed: its digest differs .*; delete the ConfigMap"):
        found(digest(text(ADMITTED)), text(FORGED))


@pytest.mark.parametrize(("status", "nodes"), [
    (digest(text(FORGED)), FORGED),
    ("", ADMITTED),
], ids=["its status has it", "a pass was cut short"])  # fmt: skip
def test_one_that_no_cache_shows_yet_is_found(status: str, nodes: int) -> None:
    """In the place where it would be made."""
    job = train_job()
    job.status.runtime_digest = status
    cluster = Cluster(job, text(nodes))
    runtimes = RuntimeFinder(cast("Any", cluster), cast("Any", None), ObjectStore[Object]())
    policy = runtimes.runtime_of(job).spec.ml_policy
    assert policy is not None
    assert (policy.num_nodes, cluster.written) == (nodes, [])
    assert runtimes.digest(job.metadata.uid) == digest(text(nodes))


UNUSABLE = {
    "it comes again and again": ("", text(FORGED), {"delete": lambda *_, **__: None},
        "ConfigMap train-runtime-snapshot has another creator"),
    "no runtime in it": (digest("{"), "{", {}, "TrainingRuntime runtime cannot be read: .*; correct it, and create"),
    "an unreadable runtime": ("", "", {"get": Undecodable("too deep", status=200, where="GET")},
        "ClusterTrainingRuntime runtime cannot be read: .*too deep"),
}  # fmt: skip


@pytest.mark.parametrize(("status", "snapshot", "changes", "why"), UNUSABLE.values(), ids=UNUSABLE)
def test_obstacles(
    monkeypatch: pytest.MonkeyPatch, status: str, snapshot: str, changes: dict[str, Any], why: str
) -> None:
    """The message says what to do about it, unless it may pass by itself."""
    job = train_job()
    job.status.runtime_digest = status
    cluster = Cluster(job, snapshot)

    def fails(*_: object, **__: object) -> None:
        raise changes["get"]

    for name, change in changes.items():
        monkeypatch.setattr(cluster, name, fails if name == "get" else change)
    with pytest.raises(Obstacle, match=why) as obstacle:
        RuntimeFinder(cast("Any", cluster), cast("Any", None), cluster.maps).runtime_of(job)
    assert obstacle.value.passing == ("again" in why or "another creator" in why)


def test_a_snapshot_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever may write ConfigMaps can nest one too deeply; the TrainJob says so and what to do."""
    spec = TrainJobSpec(runtime_ref=RuntimeRef(name="r", kind="TrainingRuntime"))
    train_job = TrainJob(metadata=ObjectMeta(name="t", namespace="ns", uid="u"), spec=spec)
    train_job.status.runtime_digest = "sha256:0"
    maps = ObjectStore[Object]()
    maps.add_object(Object(metadata=ObjectMeta(name="t-runtime-snapshot", namespace="ns")))

    def get(*_: Any) -> None:
        raise Undecodable("it is nested too deeply", status=200, where="GET")

    with closing(Client(ClientConfig("http://127.0.0.1:1"))) as client:
        monkeypatch.setattr(client, "get", get)
        monkeypatch.setattr("controller.trainjob.runtimes.snapshot_name", lambda name: f"{name}-runtime-snapshot")
        with pytest.raises(Obstacle, match=r"ConfigMap t-runtime-snapshot cannot be read: .*nested.*; delete it"):
            RuntimeFinder(client, EventWriter(client, "tests"), maps).runtime_of(train_job)

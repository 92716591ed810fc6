"""What keeps the controller from reading the snapshot of a TrainJob's runtime is told to its owner."""

from contextlib import closing
from typing import Any

import pytest

from controller.trainjob.obstacle import Obstacle
from controller.trainjob.runtimes import Runtimes
from muster.api.kubeflow.trainer import RuntimeRef, TrainJob, TrainJobSpec
from muster.api.kubernetes.meta import Object, ObjectMeta
from muster.kube.client import Client
from muster.kube.config import Config
from muster.kube.errors import Undecodable
from muster.kube.events import Recorder
from muster.kube.store import Store


def test_a_snapshot_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever may write ConfigMaps can nest one too deeply; the TrainJob says so and what to do."""
    spec = TrainJobSpec(runtime_ref=RuntimeRef(name="r", kind="TrainingRuntime"))
    train_job = TrainJob(metadata=ObjectMeta(name="t", namespace="ns", uid="u"), spec=spec)
    train_job.status.runtime_digest = "sha256:0"
    maps = Store[Object]()
    maps.put(Object(metadata=ObjectMeta(name="t-runtime-snapshot", namespace="ns")))

    def get(*_: Any) -> None:
        raise Undecodable("it is nested too deeply", status=200, where="GET")

    with closing(Client(Config("http://127.0.0.1:1"))) as client:
        monkeypatch.setattr(client, "get", get)
        monkeypatch.setattr("controller.trainjob.runtimes.snapshot_name", lambda name: f"{name}-runtime-snapshot")
        with pytest.raises(Obstacle, match=r"ConfigMap t-runtime-snapshot cannot be read: .*nested.*; delete it"):
            Runtimes(client, Recorder(client, "tests"), maps).of(train_job)

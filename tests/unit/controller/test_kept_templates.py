"""The controller's caches keep of templates with thousands of short arguments no more than their text."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from short_args import TEMPLATE, fill, growth, metadata

from controller.app import Controller
from controller.trainjob.runtimes import RuntimeFinder
from muster.api.kubeflow.trainer import RuntimeRef, TrainJob, TrainJobSpec
from muster.api.kubernetes.meta import Object, ObjectMeta
from muster.api.volcano.batch import Job
from muster.kube.client import Client
from muster.kube.config import ClientConfig
from muster.kube.events import EventWriter
from muster.kube.store import ObjectStore

JSON = dict[str, Any]


def job(number: int) -> JSON:
    """A Volcano Job."""
    return {"metadata": metadata(number), "spec": {"tasks": [{"name": "t", "replicas": 1, "template": TEMPLATE}]}}


def pod(number: int) -> JSON:
    """A pod of nobody."""
    return {"metadata": metadata(number), "spec": TEMPLATE["spec"], "status": {"phase": "Pending"}}


def indexed(number: int) -> JSON:
    """A Job of Kubernetes."""
    return {"metadata": metadata(number), "spec": {"template": TEMPLATE}}


@pytest.mark.parametrize(("cache", "make"), [("jobs", job), ("pods", pod), ("jobs of trainjobs", indexed)])
def test_a_cache_keeps_the_text_of_templates(cache: str, make: Callable[[int], JSON]) -> None:
    """At most; of pods, even less."""
    client = Client(ClientConfig("http://127.0.0.1:1"))
    controller = Controller(client, 1)
    with growth() as grown:
        size = fill(controller.reflectors[cache], make)
    client.close()
    assert grown.size_bytes < 1.2 * size


def test_the_leader_tells_of_a_job_that_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """By an Event, as nobody else looks at it; a standby says nothing."""
    told: list[tuple[str, ...]] = []

    def event(about: Object, *words: str) -> None:
        told.append((about.metadata.name, *words))

    client = Client(ClientConfig("http://127.0.0.1:1"))
    controller = Controller(client, 1)
    monkeypatch.setattr(controller._recorder, "event", event)
    jobs = controller.reflectors["jobs"]
    assert jobs.mirror.budget is not None
    monkeypatch.setattr(jobs.mirror.budget, "_of_namespace", 400_000)
    for leading in [False, True]:
        if leading:
            controller._leading.set()
        for number in range(2):
            one = job(number) | {"kind": "Job"}
            one["metadata"] = metadata(number, resourceVersion=str(leading), creationTimestamp=f"{number}")
            jobs.mirror.add_object(msgspec.convert(one, Job))
    client.close()
    assert [each.metadata.name for each in jobs.store.list()] == ["j0"]
    [(name, kind, reason, message)] = told
    assert (name, kind, reason) == ("j1", "Warning", "LeftOut")
    assert message.startswith("Muster ignores this Job: the jobs of its namespace use more than 400000 bytes")


def test_train_jobs_share_the_text_of_their_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each would have its own copy otherwise, which is twelve times as large in Python."""
    step = {"name": "node", "template": {"spec": {"template": TEMPLATE}}}
    whole = {"kind": "TrainingRuntime", "spec": {"template": {"spec": {"replicatedJobs": [step]}}}}
    text = msgspec.json.encode(whole | {"metadata": metadata(0)}).decode()
    client = Client(ClientConfig("http://127.0.0.1:1"))
    runtimes = RuntimeFinder(client, EventWriter(client, "tests"), ObjectStore[Object]())
    monkeypatch.setattr(runtimes, "_kept", lambda _: text)
    monkeypatch.setattr("controller.trainjob.runtimes.check_runtime", lambda *_, **__: [])
    spec = TrainJobSpec(runtime_ref=RuntimeRef(name="j0", kind="TrainingRuntime"))
    one = TrainJob(metadata=ObjectMeta(name="t", namespace="ns", uid="first"), spec=spec)
    expected = runtimes.runtime_of(one)
    with growth() as grown:
        for number in range(4):
            other = msgspec.structs.replace(one, metadata=ObjectMeta(name="t", namespace="ns", uid=f"{number}"))
            assert runtimes.runtime_of(other) == expected
    client.close()
    assert grown.size_bytes < len(text) / 2

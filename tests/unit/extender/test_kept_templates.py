"""The extender keeps of the templates of Jobs what it plans by; one that says too much sets its own gang aside."""

from typing import Any

import msgspec
import pytest
from extender_world import World
from short_args import TEMPLATE, fill, growth, metadata

from extender.cluster import LiveCluster
from extender.planner.state.templates import planned_job
from muster.api.limits import TEMPLATE_BYTES
from muster.api.volcano.batch import JOBS, Job
from muster.kube.client import Client
from muster.kube.config import ClientConfig
from muster.kube.reflector import Reflector

JSON = dict[str, Any]


def job(number: int, **template: Any) -> JSON:
    """A Volcano Job."""
    task = {"name": "t", "replicas": 1, "template": TEMPLATE | template}
    return {"metadata": metadata(number), "spec": {"tasks": [task]}}


def test_short_arguments_are_not_kept() -> None:
    """Neither in the cache nor in the state."""
    client = Client(ClientConfig("http://127.0.0.1:1"))
    cluster = LiveCluster(client, wake=lambda _: None)
    caches = [each for each in cluster._reflectors.values() if isinstance(each, Reflector)]
    [jobs] = [each for each in caches if each._resource is JOBS]
    with growth() as grown:
        fill(jobs, job)
    client.close()
    assert len(cluster.state.jobs) == len(jobs.store)
    assert grown.size_bytes < 250_000, "one list of arguments alone takes more"


def test_a_change_of_what_is_read_is_news() -> None:
    """Another argument is not."""
    state = World().state
    whole = msgspec.convert(job(0), Job)
    state.on_job(None, whole)
    other = msgspec.convert(job(0, spec={"containers": [{"name": "main", "args": ["--other"]}]}), Job)
    spec = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]}
    asks = msgspec.convert(job(0, spec=spec), Job)
    before = state.jobs["u0"].spec
    state.on_job(planned_job(whole), asks)
    assert state.jobs["u0"].spec != before
    state.on_job(None, other)
    [container] = state.jobs["u0"].spec.tasks[0].template["spec"]["containers"]
    assert "args" not in container


@pytest.mark.parametrize(("template", "why"), [
    ({"metadata": {"labels": {f"label-{n}": "" for n in range(9000)}}}, f"at most {TEMPLATE_BYTES.value} bytes"),
    ({"spec": {"containers": None}}, "Expected `array`"),
    ({"spec": {"nodeSelector": ["a"]}}, "Expected `object`"),
])  # fmt: skip
def test_a_template_that_is_too_large_or_odd_sets_its_gang_aside(template: JSON, why: str) -> None:
    """Nothing of it is kept but the reason, and others are planned."""
    world = World()
    key = world.gang("odd", {"worker": (1, {"cpu": "1"})})
    [known] = world.state.jobs.values()
    [task] = known.spec.tasks
    world.change(known, spec={"tasks": [msgspec.structs.replace(task, template=template)]})
    assert why in world.view(key).excluded
    [kept] = world.state.jobs.values()
    assert len(msgspec.json.encode(kept.spec)) < 1000

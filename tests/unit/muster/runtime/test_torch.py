"""The torch plugin: how many processes, from which resources, and where each value comes from."""

from typing import Any

import msgspec
import pytest
from webhook_world import JSON, container, indexed_job

from muster.api.fields import InvalidFieldError
from muster.api.kubernetes.core import IndexedJob, PodResourceClaim, PodSpec
from muster.api.kubernetes.devices import DeviceClaim
from muster.resources.accelerators import Claims, no_claims
from muster.runtime import registry
from muster.runtime.info import Info
from muster.runtime.plan import Plan
from muster.runtime.settings import from_annotations
from muster.runtime.workload import describe
from muster.workloads.batch_job import IndexedJobAdapter


def info(one: JSON, nproc: str | None = None, size: int = 2, **spec: Any) -> Info:
    """A workload whose pods have this container."""
    job = msgspec.convert(indexed_job(one, size=size, **spec), IndexedJob)
    pod = msgspec.convert({"containers": [one]}, PodSpec)
    settings = from_annotations(("metadata.annotations", {"muster.dev/nproc-per-node": nproc} if nproc else {}))
    return describe("torch", IndexedJobAdapter(job), pod, path="spec", settings=settings)


def plan(one: JSON, nproc: str | None = None, size: int = 2) -> Plan:
    """Its plan."""
    return registry.framework().plan(info(one, nproc, size))


def limited(**limits: Any) -> JSON:
    """A container with limits only."""
    return {"name": "node", "resources": {"limits": limits}}


@pytest.mark.parametrize(("nproc", "one", "processes", "slots"), [
    (None, container(nvidia_com_gpu=8), "auto", 8),
    ("auto", container(nvidia_com_gpu=8, cpu="64"), "auto", 8),
    ("gpu", container(nvidia_com_gpu="4"), "gpu", 4),
    ("cpu", container(nvidia_com_gpu=8, cpu="6"), "6", 6),
    (None, container(cpu="2500m"), "3", 3),
    (None, container(cpu="0.7"), "1", 1),
    (None, container(cpu="3700m"), "4", 4),
    (None, container(), "1", 1),
    ("12", container(), "12", 12),
    ("012", container(), "12", 12),
    (None, limited(cpu=5), "5", 5),
    (None, limited(**{"amd.com/gpu": 2}), "auto", 2),
    (None, {"name": "node", "resources": {"requests": {"cpu": 2}, "limits": {"cpu": 8}}}, "2", 2),
    (None, container(**{"nvidia.com/mig-1g.5gb": 3, "cpu": "2"}), "3", 3),
    ("gpu", container(**{"nvidia.com/mig-1g.5gb": 1, "cpu": "8"}), "1", 1),
    (None, container(**{"habana.ai/gaudi": 8, "cpu": "96"}), "8", 8),
    (None, container(**{"google.com/tpu": 4, "cpu": "96"}), "4", 4),
    (None, container(**{"gpu.intel.com/i915": 2, "gpu.intel.com/millicores": 100}), "2", 2),
    (None, container(**{"aws.amazon.com/neuroncore": 2}), "2", 2),
    (None, container(**{"huawei.com/Ascend910": 2, "huawei.com/Ascend910-memory": 64}), "2", 2),
    (None, container(**{"volcano.sh/gpu-memory": 4000, "cpu": "8"}), "1", 1),
    (None, container(**{"rdma/hca": 8, "cpu": "2"}), "2", 2),
    (None, container(**{"nvidia.com/gpu": 2, "nvidia.com/gpumem": 30000, "nvidia.com/gpucores": 50}), "auto", 2),
    (None, container(**{"nvidia.com/gpu.shared": 4}), "auto", 4),
])  # fmt: skip
def test_processes_per_node(nproc: str | None, one: JSON, processes: str, slots: int) -> None:
    """auto, cpu, gpu or a number, resolved from merged resources; CPUs are rounded up, and at least 1."""
    [pod_set] = plan(one, nproc).pod_sets
    values = {variable.name: variable.value for variable in pod_set.containers[0].env}
    assert (values["PET_NPROC_PER_NODE"], pod_set.slots) == (processes, slots)


def claim_of(*requests: JSON) -> Claims:
    """The claim of every entry."""
    return lambda _entry: msgspec.convert({"requests": list(requests)}, DeviceClaim)


def exactly(name: str, of: str, **fields: Any) -> JSON:
    """A request for devices of a class."""
    return {"name": name, "exactly": {"deviceClassName": of, **fields}}


GPUS, NICS = exactly("gpus", "gpu.example.com", count=4), exactly("nics", "rdma.example.com", count=8)


@pytest.mark.parametrize(("claims", "of", "limits", "processes", "slots"), [
    (claim_of(exactly("one", "fast")), "", {}, "1", 1),
    (claim_of(GPUS), "", {}, "4", 4),
    (claim_of(GPUS, NICS), "", {}, "4", 4),
    (claim_of(GPUS, exactly("more", "gpu.example.com")), "more", {}, "1", 1),
    (claim_of(NICS), "", {"nvidia.com/gpu": 2}, "auto", 2),
    (claim_of(exactly("all", "gpu.example.com", allocationMode="All")), "", {}, "auto", 1),
    (claim_of(exactly("watch", "gpu.example.com", adminAccess=True)), "", {}, "8", 8),
    (claim_of({"name": "a", "firstAvailable": [{"deviceClassName": "gpu", "count": 2}] * 2}), "a/x", {}, "2", 2),
    (no_claims, "", {}, "auto", 1),
])  # fmt: skip
def test_processes_of_claimed_devices(claims: Claims, of: str, limits: JSON, processes: str, slots: int) -> None:
    """The number of devices that the requests ask for; where it is not known, torchrun counts them."""
    one = container(cpu="8", **limits)
    one["resources"]["claims"] = [{"name": "mine", "request": of}]
    given = info(one)
    [pod_set] = given.pod_sets
    pod_set.spec.resource_claims.append(PodResourceClaim(name="mine", resource_claim_template_name="t"))
    pod_set.claims = claims
    [planned] = registry.framework().plan(given).pod_sets
    values = {variable.name: variable.value for variable in planned.containers[0].env}
    assert (values["PET_NPROC_PER_NODE"], planned.slots) == (processes, slots)


def test_a_part_of_a_gpu_is_one_process() -> None:
    """KAI-Scheduler's annotations give parts of devices to one container."""
    for annotations, processes in (
        ({"gpu-fraction": "0.5"}, "1"),
        ({"gpu-memory": "2Gi", "gpu-fraction-num-devices": "2"}, "2"),
        ({"gpu-fraction": "0.5", "gpu-fraction-container-name": "other"}, "8"),
    ):
        given = info(container(cpu="8"))
        given.pod_sets[0].given_annotations = annotations
        [planned] = registry.framework().plan(given).pod_sets
        assert {v.name: v.value for v in planned.containers[0].env}["PET_NPROC_PER_NODE"] == processes


def test_settings_name_further_accelerators() -> None:
    """By name or pattern, in any letters."""
    one = container(**{"example.com/NPU-x": 3, "example.com/npu-x-memory": 99, "cpu": "8"})
    [planned] = registry.framework(accelerators=["example.com/npu-*"]).plan(info(one)).pod_sets
    assert planned.slots == 3


@pytest.mark.parametrize("nproc", ["gpu", "many", "0", "-1", "1.5", "٣"])
def test_processes_that_are_refused(nproc: str) -> None:
    """Planning stops with the annotation's path."""
    with pytest.raises(InvalidFieldError) as caught:
        plan(container(), nproc)
    assert caught.value.error.path == "metadata.annotations[muster.dev/nproc-per-node]"
    assert caught.value.error.value == nproc


def test_every_variable_tells_where_it_comes_from() -> None:
    """Provenance: the plugin, and what the value follows from."""
    [pod_set] = plan(container(cpu="2"), "cpu").pod_sets
    assert {(variable.name, variable.plugin, variable.source) for variable in pod_set.containers[0].env} == {
        ("PET_NNODES", "Torch", "number of pods of Job train"),
        ("PET_NPROC_PER_NODE", "Torch", "annotation muster.dev/nproc-per-node: CPUs of container node, rounded up"),
        ("PET_NODE_RANK", "Torch", "index of the pod in Job train"),
        ("PET_MASTER_ADDR", "Torch", "rank 0 of Job train"),
        ("PET_MASTER_PORT", "Torch", "torchrun's default port"),
    }


def test_plan_is_the_same_every_time_and_cannot_change() -> None:
    """Planning is a function of its input, and its result is frozen."""
    first, second = plan(container(), size=3), plan(container(), size=3)
    assert first == second
    with pytest.raises(AttributeError):
        first.pod_sets[0].count = 7  # type: ignore[misc] # that is the point


def test_endpoints_in_rank_order() -> None:
    """Each rank's host name; thousands cost nothing until they are looked at."""
    [pod_set] = plan(container(), size=5000).pod_sets
    assert (pod_set.count, len(pod_set.endpoints), pod_set.jobs) == (5000, 5000, 1)
    assert (pod_set.endpoints[0], pod_set.endpoints[-1]) == ("train-0.train", "train-4999.train")
    assert pod_set.endpoints[1:3] == ["train-1.train", "train-2.train"]


def test_empty_job_has_no_rank_0() -> None:
    """A Job scaled to nothing still has a plan."""
    [pod_set] = plan(container(), size=0).pod_sets
    assert {variable.name: variable.value for variable in pod_set.containers[0].env}["PET_MASTER_ADDR"] == ""


def test_missing_target_is_an_error() -> None:
    """A pod without the container that runs the framework is refused, not shaped elsewhere."""
    job = msgspec.convert(indexed_job(), IndexedJob)
    with pytest.raises(InvalidFieldError, match=r"spec\.containers.*must contain container 'node'"):
        describe("torch", IndexedJobAdapter(job), PodSpec(), path="spec", settings={})

"""Parts of GPUs at admission: what is wrong is named all at once, and the container learns its devices."""

from typing import Any

import msgspec
import pytest
from webhook_world import FRAMEWORK, apply, lookups

from muster.api.kubernetes.core import PodSpec
from muster.resources.gpus import GpuShare, share_errors, share_of
from webhook.mutate.pod import mutate

BAD: dict[str, tuple[dict[str, str], dict[str, Any], list[str]]] = {
    "nothing": ({"gpu-fraction": "0"}, {}, ["a[gpu-fraction]"]),
    "a whole one": ({"gpu-fraction": "1"}, {}, ["a[gpu-fraction]"]),
    "more than one": ({"gpu-fraction": "1.5"}, {}, ["a[gpu-fraction]"]),
    "next to nothing": ({"gpu-fraction": "0.000"}, {}, ["a[gpu-fraction]"]),
    "four digits": ({"gpu-fraction": "0.1234"}, {}, ["a[gpu-fraction]"]),
    "no number": ({"gpu-fraction": "half"}, {}, ["a[gpu-fraction]"]),
    "no memory": ({"gpu-memory": "0"}, {}, ["a[gpu-memory]"]),
    "an unknown unit": ({"gpu-memory": "20Gx"}, {}, ["a[gpu-memory]"]),
    "too much memory": ({"gpu-memory": str(2**31)}, {}, ["a[gpu-memory]"]),
    "no devices": ({"gpu-fraction": "0.5", "gpu-fraction-num-devices": "0"}, {}, ["a[gpu-fraction-num-devices]"]),
    "many devices": ({"gpu-fraction": "0.5", "gpu-fraction-num-devices": "65"}, {}, ["a[gpu-fraction-num-devices]"]),
    "devices alone": ({"gpu-fraction-num-devices": "2"}, {}, ["a[gpu-fraction-num-devices]"]),
    "beside whole ones": ({"gpu-fraction": "0.5"}, {"nvidia.com/gpu": 1}, ["a[gpu-fraction]"]),
    "no such container": ({"gpu-fraction": "0.5", "gpu-fraction-container-name": "x"}, {},
                          ["a[gpu-fraction-container-name]"]),
    "two resources": ({}, {"volcano.sh/gpu-memory": 100, "volcano.sh/gpu-number": 1}, ["s.containers"]),
    "all at once": ({"gpu-fraction": "2", "gpu-memory": "x", "gpu-fraction-num-devices": "y"}, {"nvidia.com/gpu": 1},
                    ["a[gpu-fraction]", "a[gpu-memory]", "a[gpu-memory]", "a[gpu-fraction-num-devices]",
                     "a[gpu-fraction]"]),
}  # fmt: skip


def spec_of(limits: dict[str, Any]) -> PodSpec:
    """One container with these limits."""
    return msgspec.convert({"containers": [{"name": "main", "resources": {"limits": limits}}]}, PodSpec)


@pytest.mark.parametrize(("annotations", "limits", "paths"), BAD.values(), ids=BAD.keys())
def test_mistakes(annotations: dict[str, str], limits: dict[str, Any], paths: list[str]) -> None:
    """Each at its field."""
    assert [error.path for error in share_errors(annotations, spec_of(limits), "a", "s")] == paths


@pytest.mark.parametrize(("annotations", "requests", "share"), [
    ({"gpu-fraction": "0.5"}, {}, GpuShare(portion=500)),
    ({"gpu-fraction": ".25", "gpu-fraction-num-devices": "2"}, {}, GpuShare(portion=250, devices=2)),
    ({"gpu-memory": "2000"}, {}, GpuShare(memory=2000)),
    ({"gpu-memory": "2Gi"}, {}, GpuShare(memory=2048)),
    ({"gpu-memory": "1.5M"}, {}, GpuShare(memory=2)),
    ({}, {"volcano.sh/gpu-memory": 1024}, GpuShare(memory=1024, by_resource=True)),
    ({}, {"volcano.sh/gpu-number": 1}, None),
    ({}, {}, None),
])  # fmt: skip
def test_what_is_asked_for(annotations: dict[str, str], requests: dict[str, int], share: GpuShare | None) -> None:
    """In KAI-Scheduler's words and Volcano's."""
    assert share_of(annotations, requests) == share


def pod(**annotations: str) -> dict[str, Any]:
    """A pod of two containers with these annotations."""
    return {
        "metadata": {"name": "p", "annotations": {key.replace("_", "-"): value for key, value in annotations.items()}},
        "spec": {"schedulerName": "muster", "containers": [{"name": "one"}, {"name": "two"}]},
    }


@pytest.mark.parametrize(("more", "index"), [({}, 0), ({"gpu_fraction_container_name": "two"}, 1)])
def test_the_container_learns_its_devices(more: dict[str, str], index: int) -> None:
    """The first one, or the one that is named; once, however often the pod is reviewed."""
    asked = pod(gpu_fraction="0.5", **more)
    admitted = apply(asked, mutate(asked, "ns", lookups(), FRAMEWORK).patch)
    env = admitted["spec"]["containers"][index]["env"]
    assert [each["name"] for each in env] == ["NVIDIA_VISIBLE_DEVICES", "GPU_PORTION"]
    assert env[0]["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.annotations['muster.dev/gpu-devices']"
    assert "env" not in admitted["spec"]["containers"][1 - index]
    again = mutate(admitted, "ns", lookups(), FRAMEWORK)
    assert not again.patch
    assert not again.errors


def test_a_value_of_the_users_own_is_refused() -> None:
    """It would contradict what Muster sets."""
    asked = pod(gpu_fraction="0.5")
    asked["spec"]["containers"][0]["env"] = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]
    [error] = mutate(asked, "ns", lookups(), FRAMEWORK).errors
    assert error.path == "spec.containers[0].env[0].name"


def test_pods_of_other_schedulers_are_left_alone() -> None:
    """KAI-Scheduler's own pods carry the same annotation."""
    asked = pod(gpu_fraction="0.5")
    asked["spec"]["schedulerName"] = "kai-scheduler"
    assert not mutate(asked, "ns", lookups(), FRAMEWORK).patch

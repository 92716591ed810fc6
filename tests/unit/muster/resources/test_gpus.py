"""Parts of GPUs: what pods ask for, what is wrong with that, what they count for their queue, and devices of nodes."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.kubernetes.core import Node, Pod, PodSpec
from muster.resources.gpus import (
    GpuShare,
    asking_for,
    chosen_devices,
    counted,
    device_memory,
    format_portion,
    is_divided,
    is_gpu,
    share_errors,
    share_of,
)

FRACTION, MEMORY, DEVICES = "gpu-fraction", "gpu-memory", "gpu-fraction-num-devices"
VOLCANO_MEMORY, VOLCANO_NUMBER = "volcano.sh/gpu-memory", "volcano.sh/gpu-number"


@pytest.mark.parametrize(("annotations", "gpus"), [
    ({}, None),
    ({"gpu-fraction": "0.25"}, None),
    ({"gpu-fraction": "0.25", "gpu-fraction-num-devices": "8", "muster.dev/gpu-devices": "all"}, None),
    ({"gpu-memory": "1000", "muster.dev/gpu-portion": "0.125", "muster.dev/gpu-devices": "0"}, 125),
    ({"gpu-memory": "1000", "muster.dev/gpu-portion": "1", "muster.dev/gpu-devices": "0"}, 1000),
    ({"gpu-memory": "1000", "muster.dev/gpu-portion": "all", "muster.dev/gpu-devices": "0"}, 0),
    ({"gpu-fraction": "0.01", "muster.dev/gpu-portion": "0.9", "muster.dev/gpu-devices": "0"}, 900),
    ({"muster.dev/gpu-portion": "0.5", "muster.dev/gpu-devices": "0,1"}, 1000),
    ({"gpu-fraction": "much", "muster.dev/gpu-portion": "0.5", "muster.dev/gpu-devices": "3"}, 500),
])  # fmt: skip
def test_a_part_counts_as_it_is(annotations: dict[str, str], gpus: int | None) -> None:
    """By what was noted when it was bound, whatever it asks for."""
    pod = msgspec.convert({"metadata": {"annotations": annotations}, "spec": {"nodeName": "n"}}, Pod)
    assert counted(pod).get("nvidia.com/gpu") == gpus


@pytest.mark.parametrize(("portion", "text"), [(500, "0.5"), (125, "0.125"), (1, "0.001"), (1000, "1")])
def test_portions_are_written_short(portion: int, text: str) -> None:
    """As users write them."""
    assert format_portion(portion) == text


def test_memory_is_rounded_up_to_thousandths() -> None:
    """A device that is full in thousandths is not overfull in memory; more than there is fits nowhere."""
    assert GpuShare(memory=1).on(16_384) == 1
    assert GpuShare(memory=8192).on(16_384) == 500
    assert GpuShare(memory=16_385).on(16_384) == 1001
    assert GpuShare(memory=1).on(0) == 1001
    assert (GpuShare(portion=250).on(16_384), GpuShare(portion=250).on(0)) == (250, 250)


@pytest.mark.parametrize(("annotations", "requests", "share"), [
    ({}, {}, None),
    ({}, {VOLCANO_MEMORY: 1}, GpuShare(memory=1, by_resource=True)),
    ({FRACTION: "0.5"}, {VOLCANO_MEMORY: 1}, GpuShare(memory=1, by_resource=True)),
    ({FRACTION: "0.5"}, {"nvidia.com/gpu": 1000}, None),
    ({FRACTION: "0.5"}, {VOLCANO_NUMBER: 1}, None),
    ({FRACTION: ".001"}, {}, GpuShare(portion=1)),
    ({FRACTION: "0.9990", DEVICES: "8"}, {}, GpuShare(portion=999, devices=8)),
    ({MEMORY: "2000"}, {}, GpuShare(memory=2000)),
    ({MEMORY: "2Gi"}, {}, GpuShare(memory=2048)),
    ({MEMORY: "1048577k", DEVICES: "2"}, {}, GpuShare(memory=1001, devices=2)),
])  # fmt: skip
def test_what_a_pod_asks_for(annotations: dict[str, str], requests: dict[str, int], share: GpuShare | None) -> None:
    """By Volcano's resource, else by annotations, not beside whole GPUs; memory with a unit is rounded up to MiB."""
    assert share_of(annotations, requests) == share
    assert not list(share_errors(annotations, PodSpec(), "a", "s"))


def test_a_part_that_cannot_be_read_is_an_error_with_its_annotation() -> None:
    """All of them at once."""
    with pytest.raises(ValueError, match=rf"metadata\.annotations\[{FRACTION}\].*; .*\[{DEVICES}\]"):
        share_of({FRACTION: "much", DEVICES: "0"}, {})


SHARES = st.builds(GpuShare, portion=st.integers(1, 999), devices=st.integers(1, 64)) | st.builds(
    GpuShare, memory=st.integers(1, 2**30), devices=st.integers(1, 64)
)


@given(st.none() | SHARES, st.none() | SHARES)
def test_a_pod_can_be_told_to_ask_for_another_part(share: GpuShare | None, other: GpuShare | None) -> None:
    """Its other annotations stay; without any part before and after nothing is to be changed."""
    before = asking_for(other, {}) or {}
    told = asking_for(share, before | {"mine": "x"})
    assert (told is None) == (share is None and other is None)
    if told is not None:
        assert share_of(told, {}) == share
        assert told["mine"] == "x"
    assert asking_for(GpuShare(memory=1, by_resource=True), {}) is None


def spec(**limits: Any) -> PodSpec:
    """A pod with one container `main` that has these limits."""
    return msgspec.convert({"containers": [{"name": "main", "resources": {"limits": limits}}]}, PodSpec)


@pytest.mark.parametrize(("annotations", "limits", "errors"), [
    ({FRACTION: "1.0"}, {}, [f"a[{FRACTION}]: must be more than 0 and less than 1"]),
    ({FRACTION: "0.0"}, {}, [f"a[{FRACTION}]: must be more than 0"]),
    ({FRACTION: "0.1234"}, {}, [f"a[{FRACTION}]: must be more than 0"]),
    ({MEMORY: "0"}, {}, [f"a[{MEMORY}]: must be a whole number of MiB of at least 1"]),
    ({MEMORY: "500m"}, {}, [f"a[{MEMORY}]: must be a whole number"]),
    ({MEMORY: "x.Gi"}, {}, [f"a[{MEMORY}]: must be a whole number"]),
    ({MEMORY: "1073741825"}, {}, [f"a[{MEMORY}]: must be at most 1073741824"]),
    ({FRACTION: "0.5", MEMORY: "1"}, {}, [f"a[{MEMORY}]: must not be set together with {FRACTION}"]),
    ({DEVICES: "2"}, {}, [f"a[{DEVICES}]: needs {FRACTION} or {MEMORY}"]),
    ({FRACTION: "0.5", DEVICES: "0"}, {}, [f"a[{DEVICES}]: must be a whole number of at least 1"]),
    ({FRACTION: "0.5", DEVICES: "65"}, {}, [f"a[{DEVICES}]: must be at most 64"]),
    ({FRACTION: "0.5"}, {"nvidia.com/gpu": 1}, [f"a[{FRACTION}]: must not be set together with nvidia.com/gpu"]),
    ({MEMORY: "5"}, {VOLCANO_MEMORY: 1}, [f"a[{MEMORY}]: must not be set together with {VOLCANO_MEMORY}"]),
    ({}, {VOLCANO_MEMORY: 1, VOLCANO_NUMBER: 1}, [f"s.containers: must not request {VOLCANO_MEMORY} and"]),
    ({}, {VOLCANO_MEMORY: 2**31}, ["s.containers: must be at most 1073741824"]),
    ({FRACTION: "0.5", f"{FRACTION}-container-name": "x"}, {},
        [f"a[{FRACTION}-container-name]: must name one of the pod's containers: main"]),
    ({FRACTION: "0.5", f"{FRACTION}-container-name": "main"}, {"nvidia.com/gpu": "much"}, []),
])  # fmt: skip
def test_mistakes_have_their_paths(annotations: dict[str, str], limits: dict[str, Any], errors: list[str]) -> None:
    """A quantity that is none is told by another check."""
    found = [f"{error.path}: {error.message}" for error in share_errors(annotations, spec(**limits), "a", "s")]
    assert [text[: len(wanted)] for text, wanted in zip(found, errors, strict=True)] == errors


@pytest.mark.parametrize(("labels", "amounts", "memory", "divided"), [
    ({}, {}, 0, False),
    ({"nvidia.com/gpu.memory": "16384"}, {}, 16384, False),
    ({"nvidia.com/gpu.memory": "99999999999"}, {}, 2**30, False),
    ({"nvidia.com/gpu.memory": "much"}, {}, 0, False),
    ({"nvidia.com/gpu.memory": "7"}, {VOLCANO_NUMBER: 2, VOLCANO_MEMORY: 9}, 4, False),
    ({"nvidia.com/gpu.memory": "7"}, {VOLCANO_NUMBER: 1, VOLCANO_MEMORY: 9}, 9, False),
    ({"nvidia.com/gpu.product": "A100-MIG-1g.5gb"}, {}, 0, True),
    ({}, {"nvidia.com/mig-1g.5gb": 1}, 0, True),
    ({}, {"nvidia.com/mig-1g.5gb": 0, "cpu": 1}, 0, False),
])  # fmt: skip
def test_devices_of_a_node(labels: dict[str, str], amounts: dict[str, int], memory: int, *, divided: bool) -> None:
    """Volcano's device plugin knows their memory better than the label; MIG devices cannot be shared."""
    node = msgspec.convert({"metadata": {"labels": labels}}, Node)
    assert (device_memory(node, amounts), is_divided(node, amounts)) == (memory, divided)


def test_devices_and_their_names() -> None:
    """Those that Muster noted come before Volcano's."""
    assert chosen_devices({"volcano.sh/gpu-index": "1"}) == (1,)
    assert chosen_devices({"volcano.sh/gpu-index": "1", "muster.dev/gpu-devices": "0,3"}) == (0, 3)
    names = ["nvidia.com/gpu", VOLCANO_NUMBER, "nvidia.com/mig-1g.5gb", VOLCANO_MEMORY, "cpu"]
    assert [is_gpu(each) for each in names] == [True, True, True, False, False]

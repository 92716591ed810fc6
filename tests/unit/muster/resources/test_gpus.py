"""What a pod that shares GPUs counts for its queue."""

import msgspec
import pytest

from muster.api.kubernetes.core import Pod
from muster.resources.gpus import GpuShare, counted, format_portion


@pytest.mark.parametrize(
    ("annotations", "gpus"),
    [
        ({}, None),
        ({"gpu-fraction": "0.25"}, None),
        ({"gpu-fraction": "0.25", "gpu-fraction-num-devices": "8", "muster.dev/gpu-devices": "all"}, None),
        ({"gpu-memory": "1000", "muster.dev/gpu-portion": "0.125", "muster.dev/gpu-devices": "0"}, 125),
        ({"gpu-memory": "1000", "muster.dev/gpu-portion": "1", "muster.dev/gpu-devices": "0"}, 1000),
        ({"gpu-memory": "1000", "muster.dev/gpu-portion": "all", "muster.dev/gpu-devices": "0"}, 0),
        ({"gpu-fraction": "0.01", "muster.dev/gpu-portion": "0.9", "muster.dev/gpu-devices": "0"}, 900),
        ({"muster.dev/gpu-portion": "0.5", "muster.dev/gpu-devices": "0,1"}, 1000),
        ({"gpu-fraction": "much", "muster.dev/gpu-portion": "0.5", "muster.dev/gpu-devices": "3"}, 500),
    ],
)
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

"""When the status of a PodGroup is written."""

from types import SimpleNamespace
from typing import Any

import pytest

from extender.statuses import LOSS_LASTS_S, StatusWriter
from muster.api.scheduling import PodGroup, PodGroupStatus


def writer() -> StatusWriter:
    """One that is only asked, and writes nothing."""
    nothing: Any = None
    return StatusWriter(nothing, nothing, nothing, nothing, wall_s=lambda: 0.0)


@pytest.mark.parametrize(("after_s", "due"), [(0.0, False), (LOSS_LASTS_S - 0.1, False), (LOSS_LASTS_S, True)])
def test_a_running_gang_is_unknown_when_its_loss_lasts(after_s: float, *, due: bool) -> None:
    """A policy for any event would abort the whole Job, while the pod that was lost is being made again."""
    gang: Any = SimpleNamespace(key="n/g", group=PodGroup(status=PodGroupStatus(phase="Running")))
    unknown, one = PodGroupStatus(phase="Unknown"), writer()
    assert not one._due(gang, unknown, 100.0)
    assert one._due(gang, unknown, 100.0 + after_s) == due


def test_other_phases_are_written_at_once() -> None:
    """Pods are waiting for them."""
    gang: Any = SimpleNamespace(key="n/g", group=PodGroup(status=PodGroupStatus(phase="Pending")))
    assert writer()._due(gang, PodGroupStatus(phase="Inqueue"), 100.0)

"""Checkpoint reports of a run, in annotations of its pods or PodGroup (`muster.dev/checkpoint`, `evict-ready`). Pure.

A user with write access to a pod can report anything, so the length of the parsed text is limited. The time in a report
affects only the gang itself, and must be between the gang's start and now. A false report has no advantage, because a
gang that reports a checkpoint is evicted sooner.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from muster.api import names
from muster.api.kubernetes.meta import readable_time
from muster.api.limits import CHECKPOINT_CHARS, whole_number

_KEYS = frozenset({names.EVICT_NOTICE, names.EVICT_AT, names.EVICT_READY, names.CHECKPOINT})


class Checkpoint(Struct, frozen=True, gc=False):
    """A checkpoint that a gang's run reports as saved."""

    at: float
    """Time when the checkpoint was complete, in seconds since the epoch."""
    step: int | None = None
    """Number of the checkpoint, as counted by the run; None if not reported."""

    @property
    def text(self) -> str:
        """The annotation's value without the time, such as `step=1200`; empty for a checkpoint without a step."""
        return "" if self.step is None else f"step={self.step}"


class NoticeAnswer(Struct, frozen=True, gc=False):
    """The annotations of a pod or PodGroup about its eviction."""

    notice: str = ""
    """The time that the pod or gang requests between the eviction notice and the eviction."""
    evict_at: str = ""
    """The time of the eviction, as written by Muster with the notice; empty without a notice."""
    ready: bool = False
    """True if the pod or gang has nothing left to save."""
    checkpoint: Checkpoint | None = None


def checkpoint_of(text: str | None) -> Checkpoint | None:
    """Return the checkpoint that a text like `step=1200,at=2026-11-26T05:00:00Z` reports; None if the text is invalid.

    The text may omit the step. A text with unknown parts is invalid, so that later versions can define more parts.
    """
    if not text or len(text) > CHECKPOINT_CHARS.value:
        return None
    parts = dict(part.strip().partition("=")[::2] for part in text.split(","))
    at = readable_time(parts.pop("at", None))
    step = whole_number(parts["step"]) if "step" in parts else None
    if at is None or ("step" in parts and step is None) or parts.keys() - {"step"}:
        return None
    return Checkpoint(at, step)


def answer_of(annotations: Mapping[str, str]) -> NoticeAnswer | None:
    """Return the checkpoint report in the annotations of a pod or PodGroup; None if they contain no report."""
    if _KEYS.isdisjoint(annotations):
        return None
    return NoticeAnswer(
        notice=annotations.get(names.EVICT_NOTICE, ""),
        evict_at=annotations.get(names.EVICT_AT, ""),
        ready=annotations.get(names.EVICT_READY) == "true",
        checkpoint=checkpoint_of(annotations.get(names.CHECKPOINT)),
    )


def latest(checkpoints: Iterable[Checkpoint | None], *, since: float, now: float) -> Checkpoint | None:
    """Return the latest of these checkpoints that was complete between two times (seconds since the epoch)."""
    known = [each for each in checkpoints if each is not None and since <= each.at <= now]
    return max(known, key=lambda each: each.at, default=None)

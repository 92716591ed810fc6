"""The expected running time of pods, from annotations and deadlines. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from muster.api.limits import SECONDS
from muster.api.names import EXPECTED_RUNTIME
from muster.resources.duration import parse_duration_s


@dataclass(frozen=True, slots=True)
class Runtime:
    """The times of a pod or template, in seconds; None if it has none."""

    declared_s: float | None = None
    """The annotation `muster.dev/expected-runtime`."""
    deadline_s: float | None = None
    """The pod's activeDeadlineSeconds, after which it is ended."""

    def expected_s(self, otherwise: float | None) -> float | None:
        """The time that it is expected to run; `otherwise` is its workload's default. None if it may run for ever."""
        declared = otherwise if self.declared_s is None else self.declared_s
        known = [seconds for seconds in (declared, self.deadline_s) if seconds is not None]
        return min(known, default=None)


UNKNOWN = Runtime()
"""The runtime of a pod without annotation and deadline, which may run for ever."""


def runtime_of(annotations: Mapping[str, str], active_deadline_seconds: int | None) -> Runtime:
    """The runtime by these annotations and this deadline. A deadline out of bounds is ignored."""
    declared = declared_s(annotations)
    deadline = active_deadline_seconds
    if deadline is None or not 0 < deadline <= SECONDS.value:
        return UNKNOWN if declared is None else Runtime(declared)
    return Runtime(declared, float(deadline))


def declared_s(annotations: Mapping[str, str]) -> float | None:
    """Seconds in the annotation `muster.dev/expected-runtime`; None without one.

    A text that is no duration, a time of 0 and one over the limit of seconds are ignored.
    """
    text = annotations.get(EXPECTED_RUNTIME, "")
    if not text:
        return None
    try:
        seconds = parse_duration_s(text)
    except ValueError:
        return None
    return seconds if 0 < seconds <= SECONDS.value else None

"""What a plugin computes of a TrainJob's status: how it ends, and the counts of jobs that only the plugin knows."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec import field

from controller.trainjob.rules.children import ENDS
from controller.trainjob.rules.outcome import Outcome
from muster.api.base import Wire
from muster.api.kubeflow.jobset import JobSet, ReplicatedJobStatus


class Told(Wire):
    """A condition; whoever computes one reads no clock."""

    type: str
    status: str
    reason: str
    message: str = ""


class Part(Wire):
    """The part of a TrainJob's status that a plugin may compute."""

    conditions: list[Told] = field(default_factory=list)
    jobs_status: list[ReplicatedJobStatus] = field(default_factory=list)


class Computed(NamedTuple):
    """An end, if there is one, and counts that go before those that Muster makes."""

    end: Outcome | None = None
    counts: tuple[ReplicatedJobStatus, ...] = ()

    def with_counts(self, ours: Iterable[ReplicatedJobStatus]) -> list[ReplicatedJobStatus]:
        """Our counts, those of the plugin in the place of ours of that name, and the others after them."""
        theirs = {each.name: each for each in self.counts}
        known = [theirs.pop(each.name, each) for each in ours]
        return [*known, *theirs.values()]


def of_job_set(job_set: JobSet | None) -> Computed:
    """What a JobSet says of itself, which is what its TrainJob says."""
    if job_set is None:
        return Computed()
    ends = [each for each in job_set.status.conditions if each.type in ENDS and each.status == "True"]
    end = (
        Outcome("Complete" if ends[0].type == "Completed" else "Failed", ends[0].reason, ends[0].message)
        if ends
        else None
    )
    return Computed(end, tuple(job_set.status.replicated_jobs_status))


def computed(status: Mapping[str, Any] | None) -> Computed:
    """Reads a plugin's answer: a part of a TrainJob's status. msgspec.ValidationError if it is none."""
    if status is None:
        return Computed()
    found = msgspec.convert(status, Part)
    ends = [each for each in found.conditions if each.type in {"Complete", "Failed"} and each.status == "True"]
    end = (
        Outcome("Complete" if ends[0].type == "Complete" else "Failed", ends[0].reason, ends[0].message)
        if ends
        else None
    )
    return Computed(end, tuple(found.jobs_status))

"""What a plugin computes of a TrainJob's status, and what Muster makes of it."""

from typing import Any

import msgspec
import pytest

from controller.trainjob.rules.outcome import EndCondition, computed, of_job_set
from muster.api.kubeflow.jobset import JobSet, JobSetStatus, ReplicatedJobStatus
from muster.api.kubernetes.meta import Condition

JSON = dict[str, Any]
SPENT = {"type": "Failed", "status": "True", "reason": "Spent", "message": "nothing is left"}


def counts(name: str, **given: int) -> ReplicatedJobStatus:
    """All six, zeros too."""
    return ReplicatedJobStatus(
        **{"ready": 0, "succeeded": 0, "failed": 0, "active": 0, "suspended": 0, **given}, name=name
    )


@pytest.mark.parametrize(("status", "end"), [
    (None, None),
    ({}, None),
    ({"conditions": [SPENT]}, EndCondition("Failed", "Spent", "nothing is left")),
    ({"conditions": [{**SPENT, "status": "False"}]}, None),
    ({"conditions": [{**SPENT, "type": "Other"}]}, None),
    ({"conditions": [{**SPENT, "type": "Complete"}]}, EndCondition("Complete", "Spent", "nothing is left")),
])  # fmt: skip
def test_an_end(status: JSON | None, end: EndCondition | None) -> None:
    """Complete and Failed end a TrainJob once they are True; other conditions are nobody's."""
    assert computed(status).end == end


def test_counts() -> None:
    """Those of the plugin replace ours of that name, in place; what only it knows comes after."""
    theirs = computed(
        {"jobsStatus": [msgspec.to_builtins(counts("more", active=1)), msgspec.to_builtins(counts("b", ready=2))]}
    )
    ours = [counts("a"), counts("b")]
    assert theirs.with_counts(ours) == [counts("a"), counts("b", ready=2), counts("more", active=1)]
    assert computed(None).with_counts(ours) == ours


@pytest.mark.parametrize(("kind", "end"), [("Completed", "Complete"), ("Failed", "Failed"), ("Suspended", None)])
def test_a_job_set(kind: str, end: str | None) -> None:
    """Its conditions in a TrainJob's words, and its counts as they are."""
    condition = Condition(type=kind, status="True", last_transition_time="", reason="Why", message="so")
    status = JobSetStatus(conditions=[condition], replicated_jobs_status=[counts("a", active=1)])
    found = of_job_set(JobSet(status=status))
    assert (found.end and found.end.type, found.end and found.end.reason) == (end, end and "Why")
    assert found.counts == (counts("a", active=1),)
    assert of_job_set(None) == computed(None)


@pytest.mark.parametrize("status", [{"conditions": "none"}, {"conditions": [{"type": "Failed"}]}, {"jobsStatus": [{}]}])
def test_what_is_no_status(status: JSON) -> None:
    """It is told at the TrainJob."""
    with pytest.raises(msgspec.ValidationError):
        computed(status)

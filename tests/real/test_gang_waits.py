"""A gang that has no room waits as a whole, and starts as a whole when another one has ended."""

import re

import pytest
from realnode.jobs import Jobs

pytestmark = pytest.mark.real


def test_second_gang_waits_for_the_first(jobs: Jobs) -> None:
    """Two of three pods would find room, and none of them gets a node."""
    jobs.submit("gang-first")
    jobs.running("first", 2)
    jobs.submit("gang-second")
    told = jobs.explained(
        "second",
        "it waits: pods: 3 more pods must start together and 2 of them find a place; "
        "room for 1 more pod of 0.8 cpu is needed",
    )
    assert re.search("^would help +Job .*/first .* ends$", told, re.MULTILINE)
    waiting = jobs.pods("second")
    assert len(waiting) == 3
    assert not any(pod["spec"].get("nodeName") for pod in waiting)
    jobs.release("first")
    assert jobs.end("vcjob", "first") == "Completed"
    jobs.running("second", 3)
    jobs.release("second")
    assert jobs.end("job", "second") == "Complete"

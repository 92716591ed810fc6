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
    told = jobs.explained("second", "it waits: room is missing for 3 pods of 0.8 cpu each: 2 fit now")
    assert re.search("^would help +Job .*/first .* ends$", told, re.MULTILINE)
    waiting = jobs.pods("second")
    assert len(waiting) == 3
    assert not any(pod["spec"].get("nodeName") for pod in waiting)
    jobs.release("first")
    assert jobs.end("vcjob", "first") == "Completed"
    jobs.running("second", 3)
    jobs.release("second")
    assert jobs.end("job", "second") == "Complete"

"""Jobs that follow each other, from JobTemplates to the end of their JobFlow."""

from collections.abc import Callable
from typing import Any

import pytest
from job_flows import job_flow, template
from jobs import Story, task

from muster.api.base import Resource
from muster.api.volcano.batch import JOBS
from muster.api.volcano.flow import JOB_FLOWS, JOB_TEMPLATES, MADE_FOR, MADE_OF, JobFlow
from muster.kube.errors import Invalid

pytestmark = pytest.mark.plane
WaitFor = Callable[..., Any]
JSON = dict[str, Any]
RAW_JOBS: Resource[JSON] = Resource(JOBS.group, JOBS.version, JOBS.plural, JOBS.kind, JSON)
DIAMOND: dict[str, list[str]] = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}


def flow_of(story: Story, name: str = "f") -> JobFlow:
    """The JobFlow as it is."""
    return story.client.get(JOB_FLOWS, name, story.namespace)


def phase(story: Story, name: str = "f") -> str:
    """Its phase."""
    return flow_of(story, name).status.state.phase


def start(story: Story, steps: dict[str, list[str]], *templates: JSON, **spec: Any) -> None:
    """A JobFlow with these JobTemplates, and plain ones for the other steps."""
    known = {each["metadata"]["name"]: each for each in templates}
    for step in steps:
        story.client.create(JOB_TEMPLATES, known.get(step) or template(step), story.namespace)
    story.client.create(JOB_FLOWS, job_flow("f", steps, **spec), story.namespace)


def test_a_diamond_runs_to_its_end(story: Story, wait_for: WaitFor) -> None:
    """Each Job after those before it, once, also if they go at once; then each JobTemplate lists its Job."""
    start(story, DIAMOND, template("a", ttlSecondsAfterFinished=0))
    wait_for(lambda: phase(story) == "Succeed", 90)
    status = flow_of(story).status
    assert set(status.completed_jobs) == {"f-a", "f-b", "f-c", "f-d"}
    created = {each.name: each.start_timestamp or "" for each in status.job_status_list}
    assert created["f-a"] <= min(created["f-b"], created["f-c"]) <= max(created["f-b"], created["f-c"])
    assert max(created["f-b"], created["f-c"]) <= created["f-d"]
    assert [each.state for each in status.job_status_list[0].running_histories][-1] == "Completed"
    wait_for(lambda: story.gone(JOBS, "f-a"), what="its time to be over")
    assert story.phases("f-a").count("Completed") == 1
    made = story.client.get(RAW_JOBS, "f-b", story.namespace)["metadata"]
    marks = {MADE_OF: f"{story.namespace}.b", MADE_FOR: f"{story.namespace}.f"}
    assert {key: made["labels"][key] for key in marks} == marks
    listed = lambda: story.client.get(JOB_TEMPLATES, "b", story.namespace).status.job_depends_on_list  # noqa: E731
    wait_for(lambda: listed() == ["f-b"], what="the list")
    assert phase(story) == "Succeed"


def test_a_circle_is_refused(story: Story) -> None:
    """And so is a probe that would have the controller connect to pods."""
    with pytest.raises(Invalid, match=r"jobflow flow is not dag: . needs . needs ."):
        story.client.create(JOB_FLOWS, job_flow("f", {"a": ["b"], "b": ["a"]}), story.namespace)
    probed = job_flow("f", {"a": [], "b": ["a"]})
    probed["spec"]["flows"][1]["dependsOn"]["probe"] = {"tcpSocketList": [{"taskName": "w", "port": 80}]}
    with pytest.raises(Invalid, match="does not connect to pods"):
        story.client.create(JOB_FLOWS, probed, story.namespace)
    with pytest.raises(Invalid, match="minAvailable"):
        story.client.create(JOB_TEMPLATES, template("a", minAvailable=2), story.namespace)


@pytest.mark.slow
def test_jobs_go_at_the_end_or_with_their_flow(story: Story, wait_for: WaitFor) -> None:
    """By the policy `delete`; a JobFlow that is deleted takes its Jobs with it, and makes no more."""
    start(story, {"a": [], "b": ["a"]}, jobRetainPolicy="delete")
    wait_for(lambda: phase(story) == "Succeed", 60)
    wait_for(lambda: story.gone(JOBS, "f-a") and story.gone(JOBS, "f-b"), what="the Jobs to go")
    assert set(flow_of(story).status.completed_jobs) == {"f-a", "f-b"}
    story.client.create(JOB_TEMPLATES, template("long", task("w", 1)), story.namespace)
    story.client.create(JOB_FLOWS, job_flow("g", {"long": []}), story.namespace)
    wait_for(lambda: story.phase("g-long") == "Running", 60)
    story.client.delete(JOB_FLOWS, "g", story.namespace, propagation="Foreground")
    wait_for(lambda: story.gone(JOB_FLOWS, "g") and story.gone(JOBS, "g-long"), 60)

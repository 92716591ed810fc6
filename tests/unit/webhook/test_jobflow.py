"""JobFlows and JobTemplates that can never run are refused, all errors at once."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from webhook_world import JSON, request

from muster.api.limits import STEP_NEEDS, STEPS
from muster.runtime import registry
from webhook.validate.jobtemplates import review_flow, template_reviewer

CONTAINER = {"name": "main", "image": "none"}
TASK: JSON = {"name": "t", "replicas": 2, "template": {"spec": {"containers": [CONTAINER]}}}


def step(name: str, *targets: str, **probe: Any) -> JSON:
    """One step."""
    needs: JSON = {"targets": [*targets]} | ({"probe": probe} if probe else {})
    return {"name": name, "dependsOn": needs} if targets or probe else {"name": name}


def job_flow(*steps: JSON, name: str = "flow") -> JSON:
    """A JobFlow."""
    return {"kind": "JobFlow", "metadata": {"name": name, "namespace": "team"}, "spec": {"flows": [*steps]}}


def errors(*steps: JSON, name: str = "flow") -> list[str]:
    """The verdict on a new JobFlow."""
    return [str(error) for error in review_flow(request(job_flow(*steps, name=name))).errors]


def test_a_diamond_is_admitted() -> None:
    """Two steps after the first, and one after both."""
    assert errors(step("a"), step("b", "a"), step("c", "a"), step("d", "b", "c")) == []


@pytest.mark.parametrize(
    ("steps", "path", "phrase"),
    [
        ([], "spec.flows", "a JobFlow without steps would do nothing"),
        ([step("a"), step("a")], "spec.flows[1].name", "another step has this name"),
        ([step("a", "a")], "spec.flows[0].dependsOn.targets", "jobflow flow is not dag: a needs a"),
        ([step("a", "b"), step("b", "a")], "spec.flows[", "jobflow flow is not dag"),
        ([step("a", "b")], "spec.flows[0].dependsOn.targets[0]", "vertex is not defined"),
        ([step("B")], "spec.flows[0].name", "must be a DNS label"),
        ([step("b" * 60)], "spec.flows[0].name", "at most 63 characters"),
        ([step("a", httpGetList=[{"port": 80}])], "spec.flows[0].dependsOn.probe.httpGetList", "connects to no pods"),
        (
            [step("a"), step("b", "a", tcpSocketList=[{"port": 80}])],
            "spec.flows[1].dependsOn.probe.tcpSocketList",
            "connects to no pods",
        ),
        (
            [step("a", taskStatusList=[{"taskName": "t", "phase": "Running"}])],
            "spec.flows[0].dependsOn.probe.taskStatusList",
            "name the steps of these tasks",
        ),
        (
            [step("a"), step("b", "a", taskStatusList=[{"taskName": "t", "phase": "Ready"}])],
            "spec.flows[1].dependsOn.probe.taskStatusList[0].phase",
            "must be one of Pending, Running",
        ),
        (
            [step("a"), step("b", "a", taskStatusList=[{"phase": "Running"}])],
            "spec.flows[1].dependsOn.probe.taskStatusList[0].taskName",
            "must be the name of a task",
        ),
        ([step(f"s{index}") for index in range(STEPS.value + 1)], "spec.flows", STEPS.name),
        ([step("a", *["a"] * (STEP_NEEDS.value + 1))], "spec.flows", STEP_NEEDS.name),
    ],
)
def test_what_could_never_run_is_refused(steps: list[JSON], path: str, phrase: str) -> None:
    """By path and reason."""
    assert any(each.startswith(path) and phrase in each for each in errors(*steps)), errors(*steps)


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=20))
def test_exactly_what_has_no_order_is_a_circle(pairs: list[tuple[int, int]]) -> None:
    """A JobFlow is admitted if and only if its steps can be made one after the other."""
    needs = {each: {before for one, before in pairs if one == each} for each in range(8)}
    made: set[int] = set()
    while more := {each for each, before in needs.items() if each not in made and before <= made}:
        made |= more
    found = errors(*(step(f"s{each}", *(f"s{one}" for one in sorted(before))) for each, before in needs.items()))
    assert bool(found) == (len(made) < len(needs))


def test_an_update_of_metadata_alone_is_never_refused() -> None:
    """So that an object that an older version admitted can go."""
    wrong = job_flow(step("a", "a"))
    assert not review_flow(request(wrong, "UPDATE", wrong)).errors
    assert review_flow(request(wrong, "UPDATE", job_flow(step("a")))).errors


def template(**spec: Any) -> JSON:
    """A JobTemplate."""
    return {"kind": "JobTemplate", "metadata": {"name": "a", "namespace": "team"}, "spec": spec}


def template_errors(**spec: Any) -> list[str]:
    """The verdict on a new JobTemplate."""
    review = template_reviewer(registry.framework())
    return [str(error) for error in review(request(template(**spec))).errors]


def test_a_template_must_do_for_a_job() -> None:
    """The rules of a Job hold for it; names of tasks may be left out, as in a Job."""
    assert template_errors(tasks=[TASK]) == []
    unnamed = {key: value for key, value in TASK.items() if key != "name"}
    assert template_errors(tasks=[unnamed, unnamed]) == []
    assert any("No task specified" in each for each in template_errors())
    assert any("duplicated task name" in each for each in template_errors(tasks=[TASK, TASK]))
    assert any("minAvailable" in each for each in template_errors(tasks=[TASK], minAvailable=3))

"""JobFlows, JobTemplates and CronJobs that could never run are refused, all errors at once."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from webhook_world import FRAMEWORK, JSON, request

from muster.api.limits import STEP_NEEDS, STEPS
from webhook.validate.jobtemplates import cron_reviewer, review_flow, template_reviewer

TASK: JSON = {"name": "t", "replicas": 2, "template": {"spec": {"containers": [{"name": "main", "image": "none"}]}}}
UNNAMED = {key: value for key, value in TASK.items() if key != "name"}
REVIEWS = {"JobFlow": review_flow, "JobTemplate": template_reviewer(FRAMEWORK), "CronJob": cron_reviewer(FRAMEWORK)}


def made(kind: str, name: str, **spec: Any) -> JSON:
    """An object of one of the kinds."""
    return {"kind": kind, "metadata": {"name": name, "namespace": "team"}, "spec": spec}


def job_flow(*steps: JSON, name: str = "flow") -> JSON:
    """A JobFlow."""
    return made("JobFlow", name, flows=[*steps])


def step(name: str, *targets: str, **probe: Any) -> JSON:
    """One step."""
    needs: JSON = {"targets": [*targets]} | ({"probe": probe} if probe else {})
    return {"name": name, "dependsOn": needs} if targets or probe else {"name": name}


def job_template(**spec: Any) -> JSON:
    """A JobTemplate."""
    return made("JobTemplate", "a", **spec)


def cron_job(name: str = "cron", task: JSON = TASK, **spec: Any) -> JSON:
    """A CronJob."""
    return made("CronJob", name, **{"schedule": "@daily", "jobTemplate": {"spec": {"tasks": [task]}}, **spec})


RIGHT = {
    "JobFlow": job_flow(step("a"), step("b", "a"), step("c", "a"), step("d", "b", "c")),
    "JobTemplate": job_template(tasks=[TASK]),
    "CronJob": cron_job(suspend=True),
}
WRONG: list[tuple[JSON, str, str]] = [
    (job_flow(step("a", "a")), "spec.flows[0].dependsOn.targets", "jobflow flow is not dag: a needs a"),
    (job_flow(step("a", "b"), step("b", "a")), "spec.flows[", "jobflow flow is not dag"),
    (job_flow(step("a", "b")), "spec.flows[0].dependsOn.targets[0]", "jobflow flow is not dag: vertex is not defined"),
    (job_flow(step("B")), "spec.flows[0].name", "must be a DNS label"),
    (job_flow(step("b" * 60)), "spec.flows[0].name", "at most 63 characters"),
    (job_flow(step("a", httpGetList=[{"port": 80}])), "spec.flows[0].dependsOn.probe.httpGetList",
        "does not connect to pods"),
    (job_flow(step("a"), step("b", "a", tcpSocketList=[{"port": 80}])), "spec.flows[1].dependsOn.probe.tcpSocketList",
        "does not connect to pods"),
    (job_flow(step("a", taskStatusList=[{"taskName": "t", "phase": "Running"}])),
        "spec.flows[0].dependsOn.probe.taskStatusList", "name the steps of these tasks"),
    (job_flow(step("a"), step("b", "a", taskStatusList=[{"taskName": "t", "phase": "Ready"}])),
        "spec.flows[1].dependsOn.probe.taskStatusList[0].phase", "must be one of Pending, Running"),
    (job_flow(step("a"), step("b", "a", taskStatusList=[{"phase": "Running"}])),
        "spec.flows[1].dependsOn.probe.taskStatusList[0].taskName", "must be the name of a task"),
    (job_flow(*(step(f"s{index}") for index in range(STEPS.value + 1))), "spec.flows", STEPS.name),
    (job_flow(step("a", *["a"] * (STEP_NEEDS.value + 1))), "spec.flows", STEP_NEEDS.name),
    (job_template(), "spec.tasks", "No task specified"),
    (job_template(tasks=[TASK, TASK]), "spec.tasks[1].name", "duplicated task name"),
    (job_template(tasks=[TASK], minAvailable=3), "spec.minAvailable", "minAvailable"),
    (cron_job(schedule=""), "spec.schedule", "schedule is required"),
    (cron_job(schedule="every day"), "spec.schedule", "is not a valid cron expression"),
    (cron_job(schedule="TZ=UTC 0 0 * * *"), "spec.schedule", "set timeZone"),
    (cron_job(schedule="0 0 30 2 *"), "spec.schedule", "bad day-of-month"),
    (cron_job(timeZone="Local"), "spec.timeZone", "unknown timeZone"),
    (cron_job(timeZone="Mars/Olympus"), "spec.timeZone", "invalid timeZone"),
    (cron_job("c" * 53), "metadata.name", "no more than 52 characters"),
    (cron_job("c.d"), "metadata.name", "DNS label"),
    (cron_job("c" * 52, {**TASK, "name": "t" * 9}), "spec.jobTemplate.spec.tasks[0].name", "63 are allowed"),
    (cron_job(startingDeadlineSeconds=10**10), "spec.startingDeadlineSeconds", "seconds"),
    (cron_job(jobTemplate={"spec": {}}), "spec.jobTemplate.spec.tasks", "No task specified"),
]  # fmt: skip


def errors(document: JSON, old: JSON | None = None) -> list[str]:
    """The verdict on a new object, or an update."""
    return [
        str(each) for each in REVIEWS[document["kind"]](request(document, "UPDATE" if old else "CREATE", old)).errors
    ]


@pytest.mark.parametrize(("document", "path", "phrase"), WRONG, ids=[f"{row[0]['kind']}: {row[2]}" for row in WRONG])
def test_what_could_never_run_is_refused(document: JSON, path: str, phrase: str) -> None:
    """By path and reason, on CREATE and UPDATE; an update of its metadata alone passes, so that it can go."""
    for old in (None, RIGHT[document["kind"]]):
        found = errors(document, old)
        assert any(each.startswith(path) and phrase in each for each in found), found
    assert errors(document, document) == []


@pytest.mark.parametrize(
    "document",
    [*RIGHT.values(), job_flow(), job_flow(step("a"), step("b", "a", "a")), job_template(tasks=[UNNAMED, UNNAMED]),
        cron_job(schedule="*/5 6-18 * * mon-fri", timeZone="Europe/Berlin", concurrencyPolicy="Replace")],
    ids=["a diamond", "a JobTemplate", "a CronJob", "no steps", "a target twice", "tasks without names",
        "in a time zone"],
)  # fmt: skip
def test_what_is_right_passes(document: JSON) -> None:
    """Of a JobTemplate the rules of a Job hold; names of tasks may be left out, as in a Job."""
    assert errors(document) == []


def test_entries_of_one_name_are_one_step() -> None:
    """As in Volcano they are admitted; a warning reports what it means."""
    verdict = REVIEWS["JobFlow"](request(job_flow(step("a"), step("b"), step("b", "a"))))
    assert not verdict.errors
    [warning] = verdict.warnings
    assert warning.startswith("spec.flows[2].name: another entry has the name 'b': both entries are one step")


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=20))
def test_exactly_what_has_no_order_is_a_circle(pairs: list[tuple[int, int]]) -> None:
    """A JobFlow is admitted if and only if its steps can be made one after the other."""
    needs = {each: {before for one, before in pairs if one == each} for each in range(8)}
    done: set[int] = set()
    while more := {each for each, before in needs.items() if each not in done and before <= done}:
        done |= more
    steps = (step(f"s{each}", *(f"s{one}" for one in sorted(before))) for each, before in needs.items())
    assert bool(errors(job_flow(*steps))) == (len(done) < len(needs))

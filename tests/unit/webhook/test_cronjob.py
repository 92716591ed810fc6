"""Volcano's CronJobs that could never run are refused, all errors at once."""

from typing import Any

import pytest
from webhook_world import JSON, request

from muster.runtime import registry
from webhook.validate.jobtemplates import cron_reviewer

TASK: JSON = {"name": "t", "replicas": 2, "template": {"spec": {"containers": [{"name": "main", "image": "none"}]}}}


def cron_job(name: str = "cron", task: JSON = TASK, **spec: Any) -> JSON:
    """A CronJob."""
    whole = {"schedule": "@daily", "jobTemplate": {"spec": {"tasks": [task]}}, **spec}
    return {"kind": "CronJob", "metadata": {"name": name, "namespace": "team"}, "spec": whole}


def errors(*, old: JSON | None = None, **more: Any) -> list[str]:
    """The verdict of the webhook."""
    review = cron_reviewer(registry.framework())
    return [str(each) for each in review(request(cron_job(**more), "UPDATE" if old else "CREATE", old)).errors]


@pytest.mark.parametrize(
    ("more", "path", "phrase"),
    [
        ({"schedule": ""}, "spec.schedule", "schedule is required"),
        ({"schedule": "every day"}, "spec.schedule", "is not a valid cron expression"),
        ({"schedule": "TZ=UTC 0 0 * * *"}, "spec.schedule", "set timeZone"),
        ({"schedule": "0 0 30 2 *"}, "spec.schedule", "bad day-of-month"),
        ({"timeZone": "Local"}, "spec.timeZone", "unknown timeZone"),
        ({"timeZone": "Mars/Olympus"}, "spec.timeZone", "invalid timeZone"),
        ({"name": "c" * 53}, "metadata.name", "no more than 52 characters"),
        ({"name": "c.d"}, "metadata.name", "DNS label"),
        (
            {"name": "c" * 52, "task": {**TASK, "name": "t" * 9}},
            "spec.jobTemplate.spec.tasks[0].name",
            "63 are allowed",
        ),
        ({"startingDeadlineSeconds": 10**10}, "spec.startingDeadlineSeconds", "seconds"),
        ({"jobTemplate": {"spec": {}}}, "spec.jobTemplate.spec.tasks", "No task specified"),
    ],
)
def test_what_could_never_run_is_refused(more: dict[str, Any], path: str, phrase: str) -> None:
    """By path and reason, on CREATE and UPDATE."""
    for old in (None, cron_job(suspend=True)):
        found = errors(old=old, **more)
        assert any(each.startswith(path) and phrase in each for each in found), found


def test_what_is_right_passes() -> None:
    """And so does a change of metadata of what an older version admitted."""
    assert (
        errors() == errors(schedule="*/5 6-18 * * mon-fri", timeZone="Europe/Berlin", concurrencyPolicy="Replace") == []
    )
    assert errors(old=cron_job(schedule="x"), schedule="x") == []

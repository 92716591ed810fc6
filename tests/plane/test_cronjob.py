"""Volcano's CronJobs: Jobs at times of a schedule."""

from collections.abc import Callable
from typing import Any

import pytest
from job_flows import template
from jobs import Story

from muster.api.volcano.batch import JOBS
from muster.api.volcano.cron import CRON_JOBS, SCHEDULED_AT, CronJob
from muster.kube.errors import Invalid

pytestmark = pytest.mark.plane
WaitFor = Callable[..., Any]
JSON = dict[str, Any]


def cron_job(*tasks: JSON, **spec: Any) -> JSON:
    """A suspended CronJob."""
    whole = {"schedule": "@yearly", "suspend": True, "jobTemplate": {"spec": template("x", *tasks)["spec"]}, **spec}
    return {"metadata": {"name": "c"}, "spec": whole}


def of(story: Story) -> CronJob:
    """The CronJob as it is."""
    return story.client.get(CRON_JOBS, "c", story.namespace)


def miss(story: Story, *, year: int = 2020) -> None:
    """Has a time of the schedule missed: the CronJob was suspended since then."""
    story.client.merge_patch(CRON_JOBS, "c", {"spec": {"suspend": True}}, story.namespace)
    old = {"status": {"lastScheduleTime": f"{year}-01-01T00:00:00Z"}}
    story.client.merge_patch(CRON_JOBS, "c", old, story.namespace, subresource="status")
    story.client.merge_patch(CRON_JOBS, "c", {"spec": {"suspend": False}}, story.namespace)


def test_a_missed_time_has_one_job(story: Story, wait_for: WaitFor) -> None:
    """That of the latest one, named after it; when it is completed, the status says when."""
    story.client.create(CRON_JOBS, cron_job(timeZone="Europe/Berlin"), story.namespace)
    miss(story)
    wait_for(lambda: of(story).status.last_successful_time, 60)
    made = story.client.list(JOBS, story.namespace)
    assert len(made) == 1
    assert made[0].metadata.annotations[SCHEDULED_AT].endswith("-01-01T00:00:00+01:00")
    status = of(story).status
    assert (status.active, (status.last_schedule_time or "")[4:]) == ([], "-12-31T23:00:00Z")
    story.client.delete(CRON_JOBS, "c", story.namespace)
    wait_for(lambda: story.client.list(JOBS, story.namespace) == [], what="its Jobs to go with it")


def test_admission_and_deadline(story: Story, wait_for: WaitFor) -> None:
    """A schedule that cannot be read is refused; a time that is too long ago is left out."""
    with pytest.raises(Invalid, match="is not a valid cron expression"):
        story.client.create(CRON_JOBS, cron_job(schedule="61 * * * *"), story.namespace)
    story.client.create(CRON_JOBS, cron_job(startingDeadlineSeconds=1, schedule="0 0 29 2 *"), story.namespace)
    miss(story)
    story.client.merge_patch(CRON_JOBS, "c", {"spec": {"startingDeadlineSeconds": None}}, story.namespace)
    wait_for(lambda: len(story.client.list(JOBS, story.namespace)) == 1, 60)

"""CronJob (batch.volcano.sh/v1alpha1), which creates Jobs at the times of a schedule.

This is not Kubernetes' own CronJob.
"""

from typing import Annotated, Literal

from msgspec import Meta, field

from muster.api.base import Resource, Wire
from muster.api.kubernetes.meta import Object, TemplateMeta, Time
from muster.api.volcano import batch, scheduling

ConcurrencyPolicy = Literal["Allow", "Forbid", "Replace"]
SCHEDULED_AT = "volcano.sh/cronjob-scheduled-timestamp"
"""Annotation of a Job: the scheduled time for which it was created."""


class CronJobTemplate(Wire):
    """Labels, annotations and spec of the Jobs."""

    metadata: TemplateMeta = field(default_factory=TemplateMeta)
    """Labels and annotations of the Jobs."""
    spec: batch.JobSpec = field(default_factory=batch.JobSpec)
    """spec of the Jobs."""


class CronJobSpec(Wire):
    """spec of a CronJob."""

    schedule: str = ""
    """Minute, hour, day of month, month and day of week, e.g. `30 6 * * mon-fri`; or `@daily`, `@every 2h`."""
    time_zone: str | None = None
    """Time zone of the schedule by its name, e.g. `Europe/Berlin`; UTC if left out."""
    starting_deadline_seconds: Annotated[int, Meta(ge=0, le=2**62)] | None = None
    """Seconds after a scheduled time until which its Job may still be created; no limit if unset."""
    concurrency_policy: ConcurrencyPolicy = "Allow"
    """While an earlier Job runs: start the next one too (`Allow`), skip it (`Forbid`), or `Replace` the running Job."""
    suspend: bool = False
    """True if no Jobs are created for now."""
    job_template: CronJobTemplate = field(default_factory=CronJobTemplate)
    """The Jobs."""
    successful_jobs_history_limit: scheduling.NonNegative | None = None
    """Number of completed Jobs to keep; 3 if left out."""
    failed_jobs_history_limit: scheduling.NonNegative | None = None
    """Number of failed and terminated Jobs to keep; 1 if left out."""


class ObjectReference(Wire):
    """An object."""

    api_version: str = ""
    """Group and version of the CronJob."""
    kind: str = ""
    """Its kind."""
    name: str = ""
    """Its name."""
    namespace: str = ""
    """Its namespace."""
    uid: str = ""
    """Its UID."""


class CronJobStatus(Wire):
    """status of a CronJob."""

    active: list[ObjectReference] = field(default_factory=list)
    """Jobs of the CronJob that have not ended; of very many, the first ones by name."""
    last_schedule_time: Time | None = None
    """The latest scheduled time for which a Job was created."""
    last_successful_time: Time | None = None
    """Time when the latest Job was completed."""
    message: str = ""
    """Reason why the Job that is due cannot be created; empty if there is none."""


class CronJob(Object):
    """Creates Jobs at the times of a schedule."""

    spec: CronJobSpec = field(default_factory=CronJobSpec)
    """Desired state."""
    status: CronJobStatus = field(default_factory=CronJobStatus)
    """Observed state; the controller writes it."""


CRON_JOBS = Resource("batch.volcano.sh", "v1alpha1", "cronjobs", "CronJob", CronJob)

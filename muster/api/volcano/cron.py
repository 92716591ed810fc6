"""Volcano's CronJob (batch.volcano.sh/v1alpha1, not Kubernetes' own), which creates Jobs at the times of a schedule."""

from typing import Annotated, Literal

from msgspec import Meta, field

from muster.api.base import Resource, Wire
from muster.api.kubernetes.meta import Object, TemplateMeta, Time
from muster.api.volcano import batch, scheduling

ConcurrencyPolicy = Literal["Allow", "Forbid", "Replace"]
SCHEDULED_AT = "volcano.sh/cronjob-scheduled-timestamp"
"""Annotation of a Job with the scheduled time for which it was created."""


class CronJobTemplate(Wire):
    """Template of the Jobs: labels, annotations and spec."""

    metadata: TemplateMeta = field(default_factory=TemplateMeta)
    """Labels and annotations of the Jobs."""
    spec: batch.JobSpec = field(default_factory=batch.JobSpec)
    """spec of the Jobs."""


class CronJobSpec(Wire):
    """spec of a CronJob."""

    schedule: str = ""
    """Minute, hour, day of month, month and day of week, as in `30 6 * * mon-fri`, or a form such as `@daily` or
    `@every 2h`."""
    time_zone: str | None = None
    """Name of the schedule's time zone, such as `Europe/Berlin`; UTC if left out."""
    starting_deadline_seconds: Annotated[int, Meta(ge=0, le=2**62)] | None = None
    """Number of seconds after a scheduled time within which the Job may still be created; no limit if unset."""
    concurrency_policy: ConcurrencyPolicy = "Allow"
    """Behaviour while an earlier Job runs: `Allow` creates the next Job too, `Forbid` skips it, and `Replace` replaces
    the running Job."""
    suspend: bool = False
    """If true, no Jobs are created."""
    job_template: CronJobTemplate = field(default_factory=CronJobTemplate)
    """Template of the Jobs."""
    successful_jobs_history_limit: scheduling.NonNegative | None = None
    """Number of completed Jobs to keep; 3 if left out."""
    failed_jobs_history_limit: scheduling.NonNegative | None = None
    """Number of failed and terminated Jobs to keep; 1 if left out."""


class ObjectReference(Wire):
    """Reference to an object."""

    api_version: str = ""
    """Group and version of the object."""
    kind: str = ""
    """Kind of the object."""
    name: str = ""
    """Name of the object."""
    namespace: str = ""
    """Namespace of the object."""
    uid: str = ""
    """UID of the object."""


class CronJobStatus(Wire):
    """status of a CronJob."""

    active: list[ObjectReference] = field(default_factory=list)
    """Jobs of the CronJob that have not ended. If there are very many Jobs, only the first ones by name are listed."""
    last_schedule_time: Time | None = None
    """The latest scheduled time for which a Job was created."""
    last_successful_time: Time | None = None
    """Time when a Job of the CronJob was last completed."""
    message: str = ""
    """Reason why a due Job cannot be created; empty if there is no such problem."""


class CronJob(Object):
    """A CronJob, which creates Jobs at the times of a schedule."""

    spec: CronJobSpec = field(default_factory=CronJobSpec)
    """Desired state."""
    status: CronJobStatus = field(default_factory=CronJobStatus)
    """Observed state; the controller writes it."""


CRON_JOBS = Resource("batch.volcano.sh", "v1alpha1", "cronjobs", "CronJob", CronJob)

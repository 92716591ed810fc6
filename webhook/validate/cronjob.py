"""Validation of Volcano's CronJobs: the schedule can be read, and Jobs can be made of the template."""

from collections.abc import Iterator
from dataclasses import replace

from msgspec.json import Decoder

from muster.api.fields import FieldError
from muster.api.kubernetes.admission import AdmissionRequest
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.limits import SECONDS
from muster.api.volcano.batch import Job
from muster.api.volcano.cron import CronJob
from muster.runtime.framework import Framework
from muster.volcano.schedule import ScheduleError, read, zone_of
from webhook.objects.names import MAX_LABEL, is_label
from webhook.review import Handler, Verdict, decode, leaves_spec
from webhook.validate.jobflow import check_template

_CRON_JOB = Decoder(CronJob)
_SUFFIX = 11
"""Characters behind the name of a Job, as Volcano reserves them: a dash, and the minute since 1970."""
_MINUTE = "-00000000"
_MOST_CHARS = MAX_LABEL - _SUFFIX


def reviewer(framework: Framework) -> Handler:
    """Return the handler for CronJobs, on CREATE and UPDATE."""

    def review(request: AdmissionRequest) -> Verdict:
        cron_job = decode(request.object, _CRON_JOB)
        if leaves_spec(request, cron_job, _CRON_JOB):
            return Verdict()
        template = cron_job.spec.job_template
        meta = ObjectMeta(
            name=f"{cron_job.metadata.name}{_MINUTE}" if is_label(cron_job.metadata.name) else "",
            labels=template.metadata.labels,
            annotations=template.metadata.annotations,
        )
        found = check_template(Job(metadata=meta, spec=template.spec), framework)
        errors = [replace(each, path=f"spec.jobTemplate.{each.path}") for each in found.errors]
        warnings = [f"spec.jobTemplate.{each}" for each in found.warnings]
        return Verdict(errors=[*_check(cron_job), *errors], warnings=warnings)

    return review


def _check(cron_job: CronJob) -> Iterator[FieldError]:
    name, spec = cron_job.metadata.name, cron_job.spec
    if name and (len(name) > _MOST_CHARS or not is_label(name)):
        message = (
            f"cronJob name must be no more than {_MOST_CHARS} characters to accommodate job name suffix (max "
            f"{MAX_LABEL} total), and a DNS label, as the names of pods begin with it"
        )
        yield FieldError("metadata.name", message, name)
    yield from SECONDS.exceeded("spec.startingDeadlineSeconds", spec.starting_deadline_seconds or 0)
    if not spec.schedule:
        yield FieldError("spec.schedule", "schedule is required, such as `0 6 * * *`", reason="Required")
        return
    try:
        zone_of(spec.time_zone)
    except ScheduleError as error:
        yield FieldError("spec.timeZone", str(error), spec.time_zone)
    try:
        read(spec.schedule, None)
    except ScheduleError as error:
        yield FieldError("spec.schedule", str(error), spec.schedule)

"""Validation of objects from which Volcano Jobs are created: JobFlows, JobTemplates, and CronJobs.

A JobFlow may be created before its JobTemplates, e.g. from one file with both: a step waits for a missing JobTemplate,
and the controller reports this in an Event. A Job that a patch has made invalid is refused when it is created.
"""

from collections.abc import Iterator
from dataclasses import replace

from muster.api.fields import FieldError, Findings
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.limits import SECONDS
from muster.api.volcano import batch, cron
from muster.api.volcano.flow import JobFlow, JobTemplate, job_name
from muster.runtime.framework import Framework
from muster.runtime.workload import template_of
from muster.volcano.flows import PATH, check_steps, warn_steps
from muster.volcano.schedule import ScheduleError, read_schedule, zone_of
from webhook.objects.names import MAX_LABEL, is_label
from webhook.review import Handler, reviewer_of
from webhook.validate.volcano_job.job import check_job, warn
from webhook.validate.volcano_job.tasks import check_frameworks

_SUFFIX = 11
"""Length of the suffix that is appended to a Job's name, as in Volcano: a dash, and the minutes since 1970."""
_MINUTE = "-00000000"
_MOST_CHARS = MAX_LABEL - _SUFFIX


def template_reviewer(framework: Framework) -> Handler:
    """Return the handler for JobTemplates: their spec must be valid for a Job."""
    return reviewer_of(
        JobTemplate, lambda each: check_template(batch.Job(metadata=each.metadata, spec=each.spec), framework)
    )


def check_template(job: batch.Job, framework: Framework) -> Findings:
    """Return the errors that future Jobs would have, by the rules that need no look-ups."""
    for task in job.spec.tasks:
        template_of(task.template)  # raises here, so that the checks below can rely on its shape
    found = Findings(check_job(job), warn(job))
    found.add(check_frameworks(job, framework))
    return found


def _check_names(job_flow: JobFlow) -> Iterator[FieldError]:
    """Check that the names of a JobFlow's Jobs are DNS labels, because they are prefixes of pod names."""
    for index, flow in enumerate(job_flow.spec.flows):
        name = job_name(job_flow, flow.name)
        if flow.name and job_flow.metadata.name and not is_label(name):
            message = (
                f"the Job of this step would be {name}, which must be a DNS label: at most {MAX_LABEL} characters (it "
                f"has {len(name)}) of a-z, 0-9 and '-'; choose another name for the JobFlow or the JobTemplate"
            )
            yield FieldError(f"{PATH}[{index}].name", message, flow.name)


review_flow = reviewer_of(
    JobFlow, lambda job_flow: Findings([*check_steps(job_flow), *_check_names(job_flow)], [*warn_steps(job_flow)])
)
"""The handler for JobFlows."""


def cron_reviewer(framework: Framework) -> Handler:
    """Return the handler for CronJobs."""

    def check(cron_job: cron.CronJob) -> Findings:
        template = cron_job.spec.job_template
        meta = ObjectMeta(
            name=f"{cron_job.metadata.name}{_MINUTE}" if is_label(cron_job.metadata.name) else "",
            labels=template.metadata.labels,
            annotations=template.metadata.annotations,
        )
        found = check_template(batch.Job(metadata=meta, spec=template.spec), framework)
        errors = [replace(each, path=f"spec.jobTemplate.{each.path}") for each in found.errors]
        warnings = [f"spec.jobTemplate.{each}" for each in found.warnings]
        return Findings([*_check_cron(cron_job), *errors], warnings)

    return reviewer_of(cron.CronJob, check)


def _check_cron(cron_job: cron.CronJob) -> Iterator[FieldError]:
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
        read_schedule(spec.schedule, None)
    except ScheduleError as error:
        yield FieldError("spec.schedule", str(error), spec.schedule)

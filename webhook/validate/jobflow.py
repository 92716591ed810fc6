"""Validation of JobFlows and of the JobTemplates that their steps are made of.

A JobFlow may come before its JobTemplates, as in one file of both: a step whose JobTemplate is missing waits for it,
and the controller says so in an Event. A Job that a patch has made wrong is refused when it is made.
"""

from collections.abc import Iterator

from msgspec import structs
from msgspec.json import Decoder

from muster.api.fields import FieldError, Findings
from muster.api.kubernetes.admission import AdmissionRequest
from muster.api.volcano.batch import Job, JobSpec
from muster.api.volcano.flow import JobFlow, JobTemplate, job_name
from muster.runtime.framework import Framework
from muster.runtime.workload import template_of
from muster.volcano.flows import PATH, check_steps
from muster.volcano.tasks import minimum, task_name
from webhook.objects.names import MAX_LABEL, is_label
from webhook.review import Handler, Verdict, decode, leaves_spec
from webhook.validate.volcano_job.job import check as check_job
from webhook.validate.volcano_job.job import warn
from webhook.validate.volcano_job.tasks import check_frameworks

_JOB_FLOW = Decoder(JobFlow)
_JOB_TEMPLATE = Decoder(JobTemplate)


def review_flow(request: AdmissionRequest) -> Verdict:
    """Review a JobFlow on CREATE and UPDATE."""
    job_flow = decode(request.object, _JOB_FLOW)
    if leaves_spec(request, job_flow, _JOB_FLOW):
        return Verdict()
    return Verdict(errors=[*check_steps(job_flow), *_check_names(job_flow)])


def template_reviewer(framework: Framework) -> Handler:
    """Return the handler for JobTemplates, on CREATE and UPDATE: their spec must do for a Job."""

    def review(request: AdmissionRequest) -> Verdict:
        template = decode(request.object, _JOB_TEMPLATE)
        if leaves_spec(request, template, _JOB_TEMPLATE):
            return Verdict()
        found = check_template(Job(metadata=template.metadata, spec=template.spec), framework)
        return Verdict(errors=found.errors, warnings=found.warnings)

    return review


def check_template(job: Job, framework: Framework) -> Findings:
    """Return everything that is wrong with Jobs that are made later, by the rules that need no look-ups."""
    for task in job.spec.tasks:
        template_of(task.template)  # raises here, so that the checks below can rely on its shape
    completed = Job(metadata=job.metadata, spec=_completed(job.spec))
    found = Findings(check_job(completed), warn(completed))
    found.add(check_frameworks(completed, framework))
    return found


def _check_names(job_flow: JobFlow) -> Iterator[FieldError]:
    """Check the names of the Jobs, with which the names of pods begin."""
    for index, flow in enumerate(job_flow.spec.flows):
        name = job_name(job_flow, flow.name)
        if flow.name and job_flow.metadata.name and not is_label(name):
            message = (
                f"the Job of this step would be {name}, which must be a DNS label: at most {MAX_LABEL} characters (it "
                f"has {len(name)}) of a-z, 0-9 and '-'; choose another name for the JobFlow or the JobTemplate"
            )
            yield FieldError(f"{PATH}[{index}].name", message, flow.name)


def _completed(spec: JobSpec) -> JobSpec:
    """Return the spec with the defaults of tasks, as admission writes them into a Job."""
    tasks = [
        structs.replace(task, name=task_name(index, task), min_available=minimum(task))
        for index, task in enumerate(spec.tasks)
    ]
    return structs.replace(spec, tasks=tasks)

"""A batch/v1 Job that opts in to Muster: what its pods would be refused for is refused here, where users read it."""

import msgspec
from msgspec.json import Decoder

from muster.api import names
from muster.api.admission import AdmissionRequest
from muster.api.core import IndexedJob
from muster.api.fields import FieldError, Findings
from muster.api.limits import PODS, whole_number
from muster.runtime.framework import Framework
from muster.runtime.workload import template_of
from muster.workloads.choose import adapter_for
from webhook.lookup import Queues
from webhook.objects.names import unknown_framework, unusable_queue
from webhook.review import Handler, MalformedError, Verdict, decode
from webhook.validate.frameworks import check_template

_JOB = Decoder(IndexedJob)
_TEMPLATE = "spec.template"


def reviewer(queues: Queues, framework: Framework) -> Handler:
    """The handler for Jobs of batch/v1, on CREATE."""

    def review(request: AdmissionRequest) -> Verdict:
        findings = check(decode(request.object, _JOB), queues, framework)
        return Verdict(errors=findings.errors, warnings=findings.warnings)

    return review


def check(job: IndexedJob, queues: Queues, framework: Framework) -> Findings:
    """Everything that is wrong with a new Job as far as Muster is concerned."""
    try:
        _, labels, annotations = template_of(job.spec.template)
    except msgspec.ValidationError as error:
        raise MalformedError(f"{_TEMPLATE}: {error}") from error
    findings = Findings()
    if names.QUEUE in labels:
        path = _where(names.QUEUE, job.metadata.labels)
        findings.errors += unusable_queue(path, labels[names.QUEUE], queues)
    if names.FRAMEWORK in labels:
        adapter, path = adapter_for(job), _where(names.FRAMEWORK, job.metadata.labels)
        findings.errors += [*unknown_framework(path, labels[names.FRAMEWORK], framework), *adapter.errors()]
        if adapter.size() <= PODS.value:  # else refused already; nobody has to write a list of so many hosts
            found = check_template(job.spec.template, _TEMPLATE, adapter, job.metadata.annotations, framework)
            findings.add(found)
    findings.errors += _check_minimum(job, annotations)
    return findings


def _check_minimum(job: IndexedJob, annotations: dict[str, str]) -> list[FieldError]:
    """The gang's minimum is a number of pods that can run at once."""
    text = {**job.metadata.annotations, **annotations}.get(names.MIN_MEMBER)
    most = 1 if job.spec.parallelism is None else job.spec.parallelism
    least = whole_number(text, min(most, PODS.value))
    if text is None or least:
        return []
    path = f"metadata.annotations[{names.MIN_MEMBER}]"
    where = f"{_TEMPLATE}.{path}" if names.MIN_MEMBER in annotations else path
    return [FieldError(where, f"must be a number from 1 to {most} (spec.parallelism)", text)]


def _where(key: str, workload: dict[str, str]) -> str:
    """The path of a label: on the Job, from where it was copied, or in the template."""
    path = f"metadata.labels[{key}]"
    return path if key in workload else f"{_TEMPLATE}.{path}"

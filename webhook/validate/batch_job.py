"""A batch/v1 Job that opts in to Muster: what its pods would be refused for is refused here, where users read it."""

import msgspec
from msgspec.json import Decoder

from muster.api import names
from muster.api.fields import Findings
from muster.api.kubernetes.admission import AdmissionRequest
from muster.api.kubernetes.core import IndexedJob
from muster.api.limits import PODS
from muster.resources.topology import mistakes
from muster.runtime.framework import Framework
from muster.runtime.workload import template_of
from muster.workloads.batch_job import BATCH_JOB
from muster.workloads.choose import adapter_for
from muster.workloads.templates import pod_templates
from webhook.lookup import Queues
from webhook.objects.known_keys import unknown_keys
from webhook.objects.names import unknown_framework, unusable_queue
from webhook.review import Handler, MalformedError, Verdict, decode, generic
from webhook.validate.frameworks import check_template
from webhook.validate.gpus import check_gpus
from webhook.validate.topology import check_templates_nearness
from webhook.validate.workload import check_minimum, dotted, new_ones

_JOB = Decoder(IndexedJob)
_TEMPLATE = "spec.template"


def reviewer(queues: Queues, framework: Framework) -> Handler:
    """The handler for Jobs of batch/v1, on CREATE and UPDATE: an update is refused for what it makes wrong."""

    def review(request: AdmissionRequest) -> Verdict:
        job = decode(request.object, _JOB)
        if job.metadata.deletion_timestamp:
            return Verdict()
        findings = check(job, queues, framework)
        findings.warnings += _warn_keys(request.object)
        if request.operation == "UPDATE":
            before = check(decode(request.old_object, _JOB), queues, framework)
            before.warnings += _warn_keys(request.old_object)
            findings = new_ones(findings, before)
        return Verdict(errors=findings.errors, warnings=findings.warnings)

    return review


def check(job: IndexedJob, queues: Queues, framework: Framework) -> Findings:
    """Everything that is wrong with a new Job as far as Muster is concerned."""
    try:
        _, labels, annotations = template_of(job.spec.template)
    except msgspec.ValidationError as error:
        raise MalformedError(f"{_TEMPLATE}: {error}") from error
    findings = Findings(errors=[*check_gpus(job.spec.template, _TEMPLATE)])
    if names.QUEUE in labels:
        path = _where(names.QUEUE, job.metadata.labels)
        findings.errors += unusable_queue(path, labels[names.QUEUE], queues)
    if names.FRAMEWORK in labels:
        adapter, path = adapter_for(job), _where(names.FRAMEWORK, job.metadata.labels)
        findings.errors += [*unknown_framework(path, labels[names.FRAMEWORK], framework), *adapter.errors()]
        if adapter.size() <= PODS.value:  # else refused already; nobody has to write a list of so many hosts
            found = check_template(job.spec.template, _TEMPLATE, adapter, job.metadata.annotations, framework)
            findings.add(found)
    most = 1 if job.spec.parallelism is None else job.spec.parallelism
    findings.errors += check_minimum(_TEMPLATE, annotations, job.metadata.annotations, most, "spec.parallelism")
    findings.errors += mistakes(job.metadata.annotations, "metadata.annotations")
    findings.errors += check_templates_nearness([(annotations, f"{_TEMPLATE}.metadata.annotations", most)])
    return findings


def _warn_keys(raw: msgspec.Raw) -> list[str]:
    document = generic(raw)
    warnings = unknown_keys(document.get("metadata"))
    for place, template in pod_templates(document, BATCH_JOB.templates):
        warnings += unknown_keys(template.get("metadata"), f"{dotted(place)}.metadata")
    return warnings


def _where(key: str, workload: dict[str, str]) -> str:
    """The path of a label: on the Job, from where it was copied, or in the template."""
    path = f"metadata.labels[{key}]"
    return path if key in workload else f"{_TEMPLATE}.{path}"

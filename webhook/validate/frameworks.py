"""What the pods of a workload that asks for a framework would be refused for, as far as its template says."""

from collections.abc import Mapping
from typing import Any

from muster.api import names
from muster.api.fields import Findings, InvalidFieldError
from muster.api.limits import PODS
from muster.api.volcano.batch import Job, TaskSpec
from muster.runtime.framework import Framework
from muster.runtime.settings import from_annotations
from muster.runtime.workload import describe, template_of
from muster.volcano.tasks import total_replicas
from muster.workloads.adapter import Adapter
from muster.workloads.volcano_job import VolcanoJobAdapter
from webhook.objects.names import unknown_framework


def check_template(
    template: Mapping[str, Any], path: str, adapter: Adapter, annotations: Mapping[str, str], framework: Framework
) -> Findings:
    """Settings and reserved env. The labelled template stands at `path`; `annotations` are the workload's own."""
    findings = Findings()
    spec, labels, own = template_of(template)
    settings = from_annotations((f"{path}.metadata.annotations", own), ("metadata.annotations", annotations))
    try:
        info = describe(labels[names.FRAMEWORK], adapter, spec, path=f"{path}.spec", settings=settings)
    except InvalidFieldError as error:
        findings.errors.append(error.error)
    else:
        findings.add(framework.validate(info))
    return findings


def check_frameworks(job: Job, framework: Framework) -> Findings:
    """What the pods of these tasks would be refused for, and whether they can find each other."""
    findings = Findings()
    asking = [(index, task, _label(task)) for index, task in enumerate(job.spec.tasks) if _label(task)]
    if asking:
        findings.errors += VolcanoJobAdapter(job, asking[0][1].name).errors()
    if total_replicas(job.spec) > PODS.value:
        return findings  # refused already; nobody has to write a list of so many hosts
    for index, task, name in asking:
        adapter, path = VolcanoJobAdapter(job, task.name), f"spec.tasks[{index}].template"
        findings.errors += unknown_framework(f"{path}.metadata.labels[{names.FRAMEWORK}]", name, framework)
        findings.add(check_template(task.template, path, adapter, job.metadata.annotations, framework))
    return findings


def _label(task: TaskSpec) -> str:
    _, labels, _ = template_of(task.template)
    return labels.get(names.FRAMEWORK, "")

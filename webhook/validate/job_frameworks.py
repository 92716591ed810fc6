"""Tasks of a Volcano Job that ask for a framework by label: what their pods would be refused for."""

from muster.api import names
from muster.api.batch import Job
from muster.runtime.adapters.volcano import VolcanoJobAdapter
from muster.runtime.fields import Findings, InvalidFieldError
from muster.runtime.framework import Framework
from muster.runtime.settings import from_annotations
from muster.runtime.workload import describe, template_of
from webhook.mutate.shape import unknown_framework


def check_frameworks(job: Job, framework: Framework) -> Findings:
    """The label, the settings beside it, reserved env, and whether the pods can find each other."""
    findings = Findings()
    asking = [index for index, task in enumerate(job.spec.tasks) if _label(job, index)]
    if asking:
        findings.errors += VolcanoJobAdapter(job, job.spec.tasks[asking[0]].name).errors()
    for index in asking:
        findings.add(_check_task(job, index, framework))
    return findings


def _check_task(job: Job, index: int, framework: Framework) -> Findings:
    findings = Findings()
    path, name = f"spec.tasks[{index}].template", _label(job, index)
    findings.errors += unknown_framework(f"{path}.metadata.labels[{names.FRAMEWORK}]", name, framework)
    spec, _, annotations = template_of(job.spec.tasks[index].template)
    settings = from_annotations(
        (f"{path}.metadata.annotations", annotations), ("metadata.annotations", job.metadata.annotations)
    )
    adapter = VolcanoJobAdapter(job, job.spec.tasks[index].name)
    try:
        info = describe(name, adapter, spec, path=f"{path}.spec", settings=settings)
    except InvalidFieldError as error:
        findings.errors.append(error.error)
    else:
        findings.add(framework.validate(info))
    return findings


def _label(job: Job, index: int) -> str:
    _, labels, _ = template_of(job.spec.tasks[index].template)
    return labels.get(names.FRAMEWORK, "")

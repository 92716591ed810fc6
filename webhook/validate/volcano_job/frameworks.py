"""Tasks of a Volcano Job that ask for a framework by label."""

from muster.api import names
from muster.api.batch import Job, TaskSpec
from muster.api.fields import Findings
from muster.api.limits import PODS
from muster.runtime.framework import Framework
from muster.runtime.workload import template_of
from muster.volcano.tasks import total_replicas
from muster.workloads.volcano_job import VolcanoJobAdapter
from webhook.mutate.shape import unknown_framework
from webhook.validate.frameworks import check_template


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

"""Trials of the pod templates of a Job: one pod of each is tried, and its errors get the path of its task."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from muster.api import names
from muster.api.fields import FieldError, Findings
from muster.api.muster.creator import passed_on
from muster.api.unchecked import mapping
from muster.api.volcano.batch import Job, TaskSpec
from webhook.apiserver import DryRuns
from webhook.validate.trials import MAX_TRIED, MayKnow, attempts, missing_class, nameless, quoted, shape


def check_templates(job: Job, namespace: str, dry_runs: DryRuns, may_know: MayKnow = lambda: True) -> Findings:
    """Return the API server's verdict on the first of the Job's different templates, with a warning of the rest."""
    samples = [sample(job, task) for task in job.spec.tasks]
    shapes = [shape(pod) for pod in samples]
    first: dict[bytes, dict[str, Any]] = {}
    for key, pod in zip(shapes, samples, strict=True):
        first.setdefault(key, pod)
    tried = dict(islice(first.items(), MAX_TRIED))
    refusals = dict(zip(tried, attempts([*tried.values()], namespace, dry_runs), strict=True))
    findings = Findings()
    for index, key in enumerate(shapes):
        refusal = refusals.get(key)
        if refusal:
            refusal = nameless(refusal, job.spec.tasks[index].name)
            findings.add(quoted(refusal, f"spec.tasks[{index}].template", namespace, may_know))
    untried = [index for index, key in enumerate(shapes) if key not in refusals]
    if untried:
        findings.warnings.append(
            f"spec.tasks[{untried[0]}].template: the templates of {len(untried)} tasks were not tried: of a Job only "
            f"{MAX_TRIED} different ones are, as each takes a call. If they are wrong, the Job's events will say so"
        )
    return findings


def check_priority(job: Job, namespace: str, dry_runs: DryRuns) -> Iterator[FieldError]:
    """Check by one pod that the PriorityClass exists, without which no pod of the Job could be created any more."""
    name = job.spec.priority_class_name
    if name and job.spec.tasks:
        yield from missing_class("spec.priorityClassName", name, sample(job, job.spec.tasks[0]), namespace, dry_runs)


def sample(job: Job, task: TaskSpec) -> dict[str, Any]:
    """Return a pod of this task as far as the template says; it opts out of Muster, so that no review follows."""
    template = task.template
    metadata, spec = mapping(template.get("metadata")), dict(mapping(template.get("spec")))
    ours = {names.QUEUE, names.FRAMEWORK, names.GANG}
    labels = {key: value for key, value in mapping(metadata.get("labels")).items() if key not in ours}
    if job.spec.priority_class_name and not spec.get("priorityClassName"):
        spec["priorityClassName"] = job.spec.priority_class_name
    return {
        "metadata": {
            "generateName": f"{task.name}-",
            "labels": {**labels, names.MANAGED: "false"},
            "annotations": passed_on({}, mapping(metadata.get("annotations"))),
            **({"finalizers": metadata["finalizers"]} if metadata.get("finalizers") else {}),
        },
        "spec": spec,
    }

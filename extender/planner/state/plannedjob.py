"""Volcano Jobs as the state keeps them: of their templates only what is planned by, up to a limit."""

from typing import Any

import msgspec
from msgspec.structs import replace

from extender.planner import reasons
from muster.api.limits import TEMPLATE_BYTES, LimitError
from muster.api.volcano.batch import Job
from muster.resources.planned import planned_template

UNREADABLE = "unreadable"
"""In place of a template that cannot be read, the reason, for the gang that is set aside when it is looked at."""


def planned_job(job: Job) -> Job:
    """Return a copy of a Job with the parts of its templates that are planned by."""
    tasks = [replace(task, template=_planned_or_reason(task.template)) for task in job.spec.tasks]
    volumes = [replace(volume, volume_claim=None) for volume in job.spec.volumes]
    return replace(job, spec=replace(job.spec, tasks=tasks, volumes=volumes))


def restarts_whole(job: Job) -> bool:
    """Return True if a policy of the Job restarts all of it when a pod is evicted, as that of a TrainJob's Job does."""
    policies = (policy for policy in job.spec.policies if policy.action == "RestartJob")
    return any({policy.event, *policy.events} & {"PodEvicted", "*"} for policy in policies)


def _planned_or_reason(template: dict[str, Any]) -> dict[str, Any]:
    if UNREADABLE in template:
        return {UNREADABLE: str(template[UNREADABLE])[: reasons.aside.SHOWN_CHARS]}
    try:
        return _planned(template)
    except (msgspec.ValidationError, LimitError) as error:
        return {UNREADABLE: reasons.aside.error_words(error)}


def _planned(template: dict[str, Any]) -> dict[str, Any]:
    planned = planned_template(template)
    if (size := planned.size_bytes) > TEMPLATE_BYTES.value:
        raise LimitError(reasons.aside.over_limit(what=reasons.aside.TEMPLATE, value=size, limit=TEMPLATE_BYTES))
    result: dict[str, Any] = msgspec.to_builtins(planned)
    return result

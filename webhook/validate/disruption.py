"""Disruption budgets in Volcano's annotations: how many pods of a job must stay, or may go, at a time."""

import json
import re
from collections.abc import Iterator, Mapping

from muster.api.fields import FieldError
from muster.api.volcano.batch import Job
from muster.runtime.workload import template_of

MIN_AVAILABLE = "volcano.sh/jdb-min-available"
MAX_UNAVAILABLE = "volcano.sh/jdb-max-unavailable"
_AMOUNT = re.compile(r"[1-9][0-9]*|[1-9][0-9]?%")
_INTEGER = re.compile(r"[+-]?[0-9]+")


def check_amounts(annotations: Mapping[str, str], path: str) -> Iterator[FieldError]:
    """A budget is a number of pods, or a share of them."""
    for key in (MIN_AVAILABLE, MAX_UNAVAILABLE):
        if key in annotations and not _AMOUNT.fullmatch(annotations[key]):
            yield FieldError(f"{path}[{key}]", _wrong(key, annotations[key]), annotations[key])


def _wrong(key: str, value: str) -> str:
    """Volcano's words, which tools look for, and what would be right."""
    number = "it must be a positive integer"
    share = "it must be a valid percentage which between 1% ~ 99%"
    shown = f"invalid value <{json.dumps(value)}> for {key}"
    if _INTEGER.fullmatch(value):
        return f"{shown}, {number}, or a percentage from 1% to 99%"
    return f"{shown}, {share}, or a number of pods greater than 0"


def check_one_of_two(annotations: Mapping[str, str], path: str) -> Iterator[FieldError]:
    """A pod has one budget; of a Job that has both, its pods get the first."""
    if MIN_AVAILABLE in annotations and MAX_UNAVAILABLE in annotations:
        both = f"<[{MIN_AVAILABLE} {MAX_UNAVAILABLE}]>"
        message = f"not allow configure multiple annotations {both} at same time; keep one of them"
        yield FieldError(f"{path}[{MAX_UNAVAILABLE}]", message, annotations[MAX_UNAVAILABLE])


def check_budgets(job: Job) -> Iterator[FieldError]:
    """The budgets of a Job and its templates, which its pods would be refused for."""
    yield from check_amounts(job.metadata.annotations, "metadata.annotations")
    for index, task in enumerate(job.spec.tasks):
        _, _, annotations = template_of(task.template)
        path = f"spec.tasks[{index}].template.metadata.annotations"
        yield from check_amounts(annotations, path)
        yield from check_one_of_two(annotations, path)

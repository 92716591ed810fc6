"""How near to each other pods are to be, in annotations of a workload and of its templates."""

from collections.abc import Iterator, Mapping, Sequence

from muster.api.fields import FieldError
from muster.api.names import TOPOLOGY_GROUP
from muster.api.volcano.batch import Job
from muster.resources.topology import mistakes
from muster.runtime.workload import template_of

Templates = Sequence[tuple[Mapping[str, str], str, int | None]]
"""Annotations of each template, their path, and how many pods it makes, if that is known."""


def check_nearness(job: Job) -> Iterator[FieldError]:
    """Those of a Volcano Job and its tasks."""
    yield from mistakes(job.metadata.annotations, "metadata.annotations")
    templates = []
    for index, task in enumerate(job.spec.tasks):
        _, _, annotations = template_of(task.template)
        templates.append((annotations, f"spec.tasks[{index}].template.metadata.annotations", task.replicas))
    yield from check_templates_nearness(templates)


def check_templates_nearness(templates: Templates) -> Iterator[FieldError]:
    """Those of the templates of one workload."""
    for annotations, path, pods in templates:
        yield from mistakes(annotations, path, pods)
    for key in TOPOLOGY_GROUP:
        yield from _lonely(key, templates)


def _lonely(key: str, templates: Templates) -> Iterator[FieldError]:
    """A group is a leader and its workers: two pod sets, and one of them is one pod (Kueue's rule)."""
    groups: dict[str, list[tuple[str, int | None]]] = {}
    for annotations, path, pods in templates:
        if key in annotations:
            groups.setdefault(annotations[key], []).append((f"{path}[{key}]", pods))
    for name, found in groups.items():
        counts = [pods for _, pods in found]
        known = None not in counts
        if len(found) != 2 or (known and 1 not in counts):  # noqa: PLR2004 - a leader and its workers
            have = f"{len(found)} of them" + (f", of {', '.join(map(str, counts))} pods" if known else "")
            message = f"must be on two pod templates, one of them of one pod: a leader and its workers; it is on {have}"
            yield FieldError(found[0][0], message, name)

"""The gang that `spec.scheduling` of a batch Job requests, and labels and annotations that contradict it.

From `spec.scheduling`, the Job controller creates a PodGroup, which is then the Job's gang. Labels and annotations for
Muster must agree with `spec.scheduling` about the minimum, the topology and the gang.
"""

from collections.abc import Iterator, Mapping

import msgspec

from muster.api import names
from muster.api.fields import FieldError
from muster.api.grammar import many
from muster.api.kubernetes.core import IndexedJob
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.limits import whole_number
from muster.api.muster.gang import named_gang
from muster.api.unchecked import mapping, value_at
from muster.workloads.adapter import needed
from muster.workloads.kind import TEMPLATE, Addition, Place
from muster.workloads.sample import JSON

_SCHEDULING = "spec.scheduling"
_MIN_COUNT = f"{_SCHEDULING}.schedulingPolicy.gang.minCount"
_KEY = f"{_SCHEDULING}.schedulingConstraints.topology[0].key"
_TEMPLATE = "spec.template."


def parallelism(job: IndexedJob) -> int:
    """Return the number of pods that a Job runs at a time."""
    return 1 if job.spec.parallelism is None else job.spec.parallelism


def requested_minimum(job: IndexedJob) -> int | None:
    """Return the number of pods that must start together by `spec.scheduling`: 1 for `basic`, None without the field.

    If `spec.scheduling` contains no number, the Job controller uses the parallelism.
    """
    scheduling = job.spec.scheduling
    if scheduling is None:
        return None
    gang = scheduling.scheduling_policy.gang if scheduling.scheduling_policy else None
    return 1 if gang is None else gang.min_count or parallelism(job)


def requested_level(job: IndexedJob) -> str:
    """Return the node label that must have the same value for all pods, by `spec.scheduling`; empty without one."""
    constraints = job.spec.scheduling.scheduling_constraints if job.spec.scheduling else None
    return next((each.key for each in constraints.topology), "") if constraints else ""


def native(job: JSON) -> Iterator[Addition]:
    """Yield the annotation that makes a native PodGroup, which the Job requests or names, the gang of the Job's pods.

    Without this annotation, Muster ignores the native PodGroup, because the Job controller may create one for every
    Job. The native PodGroup has none of the Job's annotations, so the template also gets the Job's annotations about
    the gang.
    """
    spec = mapping(job.get("spec"))
    if not spec.get("scheduling") and not value_at(spec, ("template", "spec", "schedulingGroup")):
        return
    place = (*TEMPLATE, "metadata", "annotations")
    source = "spec.scheduling" if spec.get("scheduling") else "spec.template.spec"
    yield Addition((*place, names.NATIVE_GROUP), "true", "the Job's native PodGroup is its gang", source)
    given, there = mapping(value_at(job, ("metadata", "annotations"))), mapping(value_at(job, place))
    for key in (*names.GANG_TOPOLOGY_KEYS, *names.GANG_KEYS, names.ELASTIC):
        if key in given and key not in there:
            yield Addition((*place, key), given[key], "so that its pods have it", f"metadata.annotations[{key}]")


def contradictions(workload: JSON, together: Mapping[Place, str]) -> Iterator[FieldError]:
    """Yield an error for each label or annotation of a batch Job that contradicts its `spec.scheduling`."""
    job = msgspec.convert(workload, IndexedJob)
    template = msgspec.convert(job.spec.template.get("metadata") or {}, ObjectMeta)
    minimum = requested_minimum(job)
    if minimum is None or names.opted_out(template.labels):
        return
    yield from _other_minimum(job, template, minimum)
    yield from _other_topology(job, template)
    named = named_gang(template)
    if named is not None:
        message = (
            f"must be left out: the pods belong to PodGroup {named}, but with {_SCHEDULING} the Job controller creates "
            "another PodGroup for them; leave out one of the two"
        )
        yield FieldError(_SCHEDULING, message, minimum)


def _other_minimum(job: IndexedJob, template: ObjectMeta, minimum: int) -> Iterator[FieldError]:
    scheduling = job.spec.scheduling
    gang = scheduling.scheduling_policy.gang if scheduling and scheduling.scheduling_policy else None
    what = f"{_MIN_COUNT} is {minimum}" if gang else f"{_SCHEDULING} is basic, so each pod starts alone"
    if gang and not gang.min_count:
        what = f"{_MIN_COUNT} is left out, so spec.parallelism {minimum} is used"
    for path, meta in (("", job.metadata), (_TEMPLATE, template)):
        for key in names.MIN_MEMBER_KEYS:
            text = meta.annotations.get(key)
            if text is not None and whole_number(text) != minimum:
                message = f"must be {minimum} or left out: {what}"
                yield FieldError(f"{path}metadata.annotations[{key}]", message, text)
    framework = template.labels.get(names.FRAMEWORK)
    if framework is None:
        return
    elastic = template.annotations.get(names.ELASTIC) or job.metadata.annotations.get(names.ELASTIC)
    least = needed(parallelism(job), elastic)
    if least != minimum:
        message = (
            f"must match label {names.FRAMEWORK} {framework!r}, with which {many(least, 'pod')} start together, but "
            f"{what}; set {_MIN_COUNT} to {least}, or leave out {_SCHEDULING}"
        )
        yield FieldError(_MIN_COUNT if gang else f"{_SCHEDULING}.schedulingPolicy", message, minimum)


def _other_topology(job: IndexedJob, template: ObjectMeta) -> Iterator[FieldError]:
    key = requested_level(job)
    if not key:
        return
    for path, meta in (("", job.metadata), (_TEMPLATE, template)):
        required = meta.annotations.get(names.TOPOLOGY_REQUIRED)
        if required is not None and required != key:
            where = f"{path}metadata.annotations[{names.TOPOLOGY_REQUIRED}]"
            yield FieldError(where, f"must be {key!r} or left out: {_KEY} is {key!r}", required)

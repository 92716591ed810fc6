"""JobSets, whose pods belong to batch/v1 Jobs; each replicated job is a separate group."""

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy

import msgspec

from muster.api import names
from muster.api.base import Resource
from muster.api.fields import FieldError
from muster.api.kubeflow.jobset import JOB_SETS
from muster.api.kubernetes.core import INDEXED_JOBS, IndexedJob
from muster.api.kubernetes.endpoints import Endpoints, Joined, NumberedNames
from muster.api.kubernetes.meta import Object, ObjectMeta
from muster.api.limits import whole_number
from muster.api.unchecked import value_at
from muster.resources.delays import JOB_BACK_OFF_MOST_S
from muster.workloads import batch_job
from muster.workloads.adapter import Owner, Value
from muster.workloads.batch_job import IndexedJobAdapter
from muster.workloads.evicted_jobs import unforgiven_parts
from muster.workloads.kind import (
    TEMPLATE,
    Admission,
    FrameworkWorld,
    GangRules,
    Place,
    PodContext,
    Ranks,
    Verbs,
    WorkloadKind,
    again,
    dotted,
)
from muster.workloads.sample import JSON, SamplePod, count, holds, mapping, name_of, part_of

JOBSET_NAME = "jobset.sigs.k8s.io/jobset-name"
REPLICATED_JOB = names.REPLICATED_JOB
REPLICAS = "jobset.sigs.k8s.io/replicatedjob-replicas"
JOB_INDEX = "jobset.sigs.k8s.io/job-index"
COORDINATOR = "jobset.sigs.k8s.io/coordinator"
EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
_BY_NODE_SELECTOR = "alpha.jobset.sigs.k8s.io/node-selector"
_TEMPLATES = ("spec", "replicatedJobs", "*", "template", "spec", "template")


class RawJobSet(Object):
    """A JobSet as raw JSON, because its CRD may be newer and have fields that Muster does not know."""

    spec: JSON = msgspec.field(default_factory=dict)
    status: JSON = msgspec.field(default_factory=dict)


_RESOURCE = Resource(JOB_SETS.group, JOB_SETS.version, JOB_SETS.plural, JOB_SETS.kind, RawJobSet)


def hosts(jobset: str, replicated_job: str, subdomain: str, *, jobs: int, pods: int) -> Endpoints:
    """Return the host names of a replicated job's pods in rank order: `jobs` Jobs with `pods` pods each."""
    runs = tuple(NumberedNames(f"{jobset}-{replicated_job}-{job}-", f".{subdomain}", pods) for job in range(jobs))
    return runs[0] if len(runs) == 1 else Joined(runs)


class JobSetAdapter(IndexedJobAdapter):
    """Adapter of a Job of a JobSet. The Jobs of one replicated job form a group and follow each other in rank order."""

    def __init__(self, job: IndexedJob) -> None:
        super().__init__(job)
        labels, owner = job.metadata.labels, job.metadata.controller
        if owner:
            self.owner = Owner(owner.api_version, owner.kind, owner.name, job.metadata.namespace, owner.uid)
        self._jobs = whole_number(labels.get(REPLICAS)) or 1
        self._before = (whole_number(labels.get(JOB_INDEX)) or 0) * super().size()
        """Number of pods in the earlier Jobs of the replicated job."""

    def errors(self) -> list[FieldError]:
        """Return the errors of the Job, and an error if JobSet's label with the Job's position is missing."""
        result = super().errors()
        for key in (JOBSET_NAME, REPLICATED_JOB, REPLICAS, JOB_INDEX):
            text = self._job.metadata.labels.get(key)
            if not text or (key in {REPLICAS, JOB_INDEX} and whole_number(text) is None):
                message = f"must be set by the JobSet controller for {names.FRAMEWORK}"
                result.append(FieldError(f"metadata.labels[{key}]", message, text))
        return result

    def rank(self, pod: ObjectMeta | None) -> Value:
        """Return the completion index if the replicated job has a single Job.

        With several Jobs, return a number that continues the count of the earlier Jobs.
        """
        own = None
        if pod and (self._jobs > 1 or self._before):
            own = whole_number(pod.labels.get(names.COMPLETION_INDEX) or pod.annotations.get(names.COMPLETION_INDEX))
        return super().rank(pod) if own is None else str(self._before + own)

    def size(self) -> int:
        """Return the number of pods in all Jobs of the replicated job."""
        return self._jobs * super().size()

    def subdomain(self) -> str:
        """Return the pod template's subdomain, which the JobSet controller sets, otherwise the JobSet's name."""
        spec = self._spec.template.get("spec") or {}
        return str(spec.get("subdomain") or self._job.metadata.labels.get(JOBSET_NAME, ""))

    def endpoints(self) -> Endpoints:
        """Return the host names `<jobset>-<replicated job>-<job index>-<index>.<subdomain>`."""
        labels = self._job.metadata.labels
        name, part = labels.get(JOBSET_NAME, ""), labels.get(REPLICATED_JOB, "")
        return hosts(name, part, self.subdomain(), jobs=self._jobs, pods=super().size())


def _adapter(job: IndexedJob, _pod: PodContext) -> JobSetAdapter | None:
    owner = job.metadata.controller
    return JobSetAdapter(job) if owner and owner.kind == _RESOURCE.kind else None


def _world(pod: ObjectMeta) -> str:
    """Return the gang name for all Jobs of a replicated job; a restart of the JobSet does not change the name."""
    labels = pod.labels
    if JOBSET_NAME not in labels or REPLICATED_JOB not in labels:
        return ""
    return f"podgroup-jobset-{labels[JOBSET_NAME]}.{labels[REPLICATED_JOB]}"


def why_not_exclusive(level: str, why: str) -> str:
    """Return the reason why pods that start together cannot have an exclusive topology, and name an alternative."""
    key, size = names.TOPOLOGY_SLICE_KEYS
    return (
        f"must be left out for {why}: JobSet creates a Job's other pods only when the first pod has a node, but a gang "
        f"needs all pods first; to keep each Job in one domain, set {key}: {level} on the pod template, and {size} to "
        "the number of pods of a Job"
    )


def exclusive(annotations: Iterable[JSON]) -> str | None:
    """Return the level of an exclusive topology that JobSet's webhook enforces.

    Returns None if the JobSet requests no exclusive topology, or if node labels enforce it.
    """
    given = {key: value for each in annotations for key, value in each.items()}
    return None if _BY_NODE_SELECTOR in given else given.get(EXCLUSIVE)


def _mistakes(jobset: JSON, together: Mapping[Place, str]) -> list[FieldError]:
    """Yield errors for exclusive topologies of gangs whose Jobs have more than one pod."""
    result = []
    for place, why in together.items():
        given = {dotted(path): mapping(found.get("annotations")) for path, found in _metadata(jobset, place)}
        level = exclusive(given.values())
        if level is not None and _pods_of(jobset, place) > 1:
            path = next(path for path, annotations in given.items() if EXCLUSIVE in annotations)
            message = why_not_exclusive(level, f"gangs ({why})")
            result.append(FieldError(f"{path}.annotations[{EXCLUSIVE}]", message, level))
    return result


def _pods_of(jobset: JSON, place: Place) -> int:
    """Return the number of pods in each Job that is created from the pod template at `place`."""
    job = mapping(value_at(jobset, place[: -len(TEMPLATE) + 1]))
    return msgspec.convert(job.get("parallelism") or 1, int)


def _metadata(jobset: JSON, place: Place) -> Iterator[tuple[Place, JSON]]:
    """Yield the place and metadata of each object whose annotations are copied to pods of this template."""
    for depth in range(len(place) + 1):
        where = (*place[:depth], "metadata")
        yield where, mapping(value_at(jobset, where))


def _samples(document: JSON, /, *, every: bool = False) -> Iterator[SamplePod]:
    """Yield the first pod of each replicated job, or all pods, with a subdomain unless host names are disabled."""
    spec = mapping(document.get("spec"))
    network = mapping(spec.get("network"))
    for replicated in msgspec.convert(spec.get("replicatedJobs") or [], list[JSON]):
        template = deepcopy(mapping(mapping(replicated.get("template")).get("spec")))
        labels = {
            JOBSET_NAME: name_of(document),
            REPLICATED_JOB: str(replicated.get("name", "")),
            REPLICAS: str(replicated.get("replicas", 1)),
        }
        pods = mapping(template.get("template"))
        metadata, pod_spec = mapping(pods.get("metadata")), mapping(pods.get("spec"))
        if network.get("enableDNSHostnames") is not False:
            pod_spec = {"subdomain": network.get("subdomain") or name_of(document), **pod_spec}
        about = f"the first pod of {replicated.get('name')} of JobSet {name_of(document)}"
        for index in range(count(replicated, "replicas") if every else 1):
            labelled = {**labels, JOB_INDEX: str(index)}
            given = {**metadata, "labels": {**mapping(metadata.get("labels")), **labelled}}
            template["template"] = {**pods, "metadata": given, "spec": pod_spec}
            job = part_of(document, INDEXED_JOBS, f"{name_of(document)}-{labels[REPLICATED_JOB]}-{index}", template)
            job["spec"].setdefault("completionMode", "Indexed")
            batch_job.fill_in(job["spec"])
            job["metadata"]["labels"] = labelled
            for each in batch_job.samples(job, every=every):
                yield SamplePod(each.pod, about, job)


JOB_SET = WorkloadKind(
    _RESOURCE,
    templates=(_TEMPLATES,),
    labelled=True,
    names_gangs=True,
    remade_s=JOB_BACK_OFF_MOST_S,
    ranks=Ranks(_adapter, INDEXED_JOBS, name_label=JOBSET_NAME, recommended_as="a JobSet"),
    gang=GangRules(),  # without a framework, each Job of the set is a gang, with labels and annotations of the JobSet
    world=FrameworkWorld(
        _world,
        GangRules(
            wants_none=lambda jobset: jobset.spec.get("suspend") is True,
            is_over=lambda jobset: holds(mapping(jobset.status).get("conditions") or [], "Completed", "Failed"),
        ),
        uid_label="jobset.sigs.k8s.io/jobset-uid",
        part_label=REPLICATED_JOB,
    ),
    admission=Admission(warnings=unforgiven_parts, mistakes=_mistakes),
    samples=_samples,
    verbs=Verbs(
        stop=("spec", "suspend"),
        ended=lambda jobset: batch_job.has_condition(jobset, "Completed", "Failed"),
        instead={
            "resize": again("JobSet keeps the sizes of its replicated jobs"),
            "priority": again("the pods of a JobSet keep the class of its templates"),
        },
    ),
)

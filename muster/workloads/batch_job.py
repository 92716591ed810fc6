"""Jobs of batch/v1, whose pods have ranks if they have indexes, and CronJobs, which create Jobs."""

from collections.abc import Iterable, Iterator
from itertools import chain

import msgspec

from muster.api import names
from muster.api.fields import FieldError
from muster.api.kubernetes.core import CRON_JOBS, INDEXED_JOBS, IndexedJob, Pod
from muster.api.kubernetes.endpoints import Endpoints, NumberedNames
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.limits import PODS, whole_number
from muster.api.muster.gang import gated
from muster.api.muster.states import TOO_MANY_FAILED
from muster.api.ranges import numbers, ranges
from muster.resources.delays import JOB_BACK_OFF_MOST_S
from muster.workloads.adapter import Adapter, Owner, Value, annotation, label
from muster.workloads.evicted_jobs import forgiving, unforgiven
from muster.workloads.job_scheduling import contradictions, native, parallelism, requested_level, requested_minimum
from muster.workloads.kind import Admission, GangRules, Ranks, Verbs, WorkloadKind, again
from muster.workloads.sample import JSON, SamplePod, holds, mapping, name_of, part_of, pod_of

_BACKOFF = "BackoffLimitExceeded"
_MAX_CHARS = 300
_ENDS = ("Complete", "Failed", "SuccessCriteriaMet", "FailureTarget")


class IndexedJobAdapter(Adapter):
    """Adapter of a Job with `completionMode: Indexed`: each index is a rank, and pods are named `<job>-<index>`."""

    def __init__(self, job: IndexedJob) -> None:
        super().__init__(Owner.from_meta(INDEXED_JOBS, job.metadata), job.spec.template, job.metadata.annotations)
        self._job = job
        self._spec = job.spec

    def errors(self) -> list[FieldError]:
        """Reject pods without an index, which have no rank, and Jobs with a parallelism below their completions."""
        spec = self._spec
        result = []
        if spec.completion_mode != "Indexed":
            message = f"must be Indexed for {names.FRAMEWORK}, because the index of a pod is its rank"
            result.append(FieldError("spec.completionMode", message, spec.completion_mode))
        if spec.completions is None:
            message = f"must be set to the number of pods for {names.FRAMEWORK}"
            result.append(FieldError("spec.completions", message, reason="Required"))
        elif spec.completions != parallelism(self._job):
            message = f"must equal completions ({spec.completions}) for {names.FRAMEWORK}: all ranks run together"
            result.append(FieldError("spec.parallelism", message, parallelism(self._job)))
        return [*result, *PODS.exceeded("spec.completions", self.size())]

    def rank(self, pod: ObjectMeta | None) -> Value:
        """Return the source of the completion index: a label since Kubernetes 1.28, an annotation in older versions."""
        by_annotation = pod and names.COMPLETION_INDEX not in pod.labels and names.COMPLETION_INDEX in pod.annotations
        return (annotation if by_annotation else label)(names.COMPLETION_INDEX)

    def size(self) -> int:
        """Return the Job's number of completions, because the pods of a gang all run at the same time."""
        return parallelism(self._job) if self._spec.completions is None else self._spec.completions

    def subdomain(self) -> str:
        """Return the subdomain of the pod template, otherwise the Job's name, which is the name of its Service."""
        spec = self._spec.template.get("spec") or {}
        return str(spec.get("subdomain") or self._job.metadata.name)

    def endpoints(self) -> Endpoints:
        """Return the host names `<job>-<index>.<subdomain>`, which the Job controller sets."""
        return NumberedNames(f"{self._job.metadata.name}-", f".{self.subdomain()}", self.size())


def _at_once(job: IndexedJob, least: int = 1) -> int:
    most = parallelism(job)
    return max(least, min(most, job.spec.completions or most))


def _left(job: IndexedJob) -> int | None:
    """Return the number of completions that have neither succeeded nor finally failed; None without completions."""
    if job.spec.completions is None:
        return None
    failed = sum(1 + last - first for first, last in ranges(str(job.status.get("failedIndexes") or "")))
    return max(0, job.spec.completions - int(job.status.get("succeeded") or 0) - failed)


def size_of_ended_world(job: IndexedJob, pods: Iterable[Pod]) -> int | None:
    """Return the number of completions that completes a Job whose elastic world has ended; None for no change.

    The number of completions is reduced only if all started pods have succeeded, and the unstarted pods have the
    highest indexes. `pods` are all pods of the Job. A Job with a success policy, or with an index that failed and did
    not succeed later, keeps its completions.
    """
    spec, status, size = job.spec, job.status, job.spec.completions
    marked = (job.metadata.annotations, mapping(mapping(spec.template.get("metadata")).get("annotations")))
    if spec.completion_mode != "Indexed" or size is None or size != spec.parallelism or spec.suspend:
        return None
    if spec.success_policy or status.get("failedIndexes") or not any(names.ELASTIC in each for each in marked):
        return None
    if holds(status.get("conditions") or [], *_ENDS):
        return None
    succeeded, failed = set(numbers(str(status.get("completedIndexes") or ""), size)), set[int | None]()
    for pod in pods:
        index = whole_number(pod.metadata.labels.get(names.COMPLETION_INDEX))
        if pod.status.phase == "Succeeded" and index is not None:
            succeeded.add(index)
        elif pod.finished:
            failed.add(index)
        elif not gated(pod):
            return None
    count = len(succeeded)
    return count if succeeded == set(range(count)) and failed <= succeeded and count < size else None


def _failure(job: IndexedJob) -> str:
    """Return why a Job has failed; for the most frequent reason, the message includes the backoffLimit."""
    failed = next((each for each in job.status.get("conditions") or [] if holds([each], "Failed")), None)
    if failed is None:
        return ""
    if failed.get("reason") == _BACKOFF and job.spec.backoff_limit is not None:
        return f"{TOO_MANY_FAILED}{job.spec.backoff_limit} allows"
    return str(failed.get("message") or failed.get("reason") or "the Job has no message")[:_MAX_CHARS]


def _service(job: IndexedJob) -> JSON:
    """Return the headless Service with the Job's name.

    The Service includes unready pods, because the pods wait for each other.
    """
    meta = job.metadata
    owner = Owner.from_meta(INDEXED_JOBS, meta).reference(blocking=False)
    selector = {names.BATCH_JOB_NAME: meta.name}
    return {
        "metadata": {"name": meta.name, "namespace": meta.namespace, "ownerReferences": [owner]},
        "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": selector},
    }


def job_pods(job: JSON, indexes: Iterable[int]) -> Iterator[JSON]:
    """Yield the pods with these indexes as the Job controller creates them; the index label is always included."""
    name, spec = name_of(job), mapping(job.get("spec"))
    indexed = spec.get("completionMode") == "Indexed"
    for index in indexes:
        pod_name = f"{name}-{index}"
        labels = {names.BATCH_JOB_NAME: name, **({names.COMPLETION_INDEX: str(index)} if indexed else {})}
        place = {"hostname": pod_name} if indexed else {}
        yield pod_of(job, mapping(spec.get("template")), pod_name, labels, place)


def fill_in(spec: JSON) -> None:
    """Set completions and parallelism of a Job that has neither field, as the API server does."""
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec |= {"completions": 1, "parallelism": 1}


def samples(job: JSON, /, *, every: bool = False) -> Iterator[SamplePod]:
    """Yield the pod with index 0 or, with `every`, all pods that run at once."""
    for pod in job_pods(job, range(_at_once(msgspec.convert(job, IndexedJob), least=0)) if every else [0]):
        yield SamplePod(pod, f"the first pod of Job {name_of(job)}")


def _cron_samples(cron_job: JSON, /, *, every: bool = False) -> Iterator[SamplePod]:
    template = mapping(mapping(cron_job.get("spec")).get("jobTemplate"))
    job = part_of(cron_job, INDEXED_JOBS, f"{name_of(cron_job)}-1", mapping(template.get("spec")))
    job["metadata"]["labels"] = mapping(mapping(template.get("metadata")).get("labels"))
    fill_in(job["spec"])
    for first in samples(job, every=every):
        yield SamplePod(first.pod, f"the first pod of each Job of CronJob {name_of(cron_job)}", job)


def _resized(job: JSON, size: int, _task: str) -> JSON:
    """Return the patch for this number of pods at a time, which also changes the completions if the pods have ranks."""
    spec = mapping(job.get("spec"))
    ranks = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
    return {"spec": {"parallelism": size, **({"completions": size} if ranks else {})}}


def _stopped(job: JSON) -> bool:
    status = mapping(job.get("status"))
    return has_condition(job, "Suspended") and not (status.get("active") or status.get("terminating"))


def has_condition(workload: JSON, *types: str) -> bool:
    """Return True if a condition of one of these types is True."""
    return holds(mapping(workload.get("status")).get("conditions") or [], *types)


BATCH_JOB = WorkloadKind(
    INDEXED_JOBS,
    labelled=True,
    one_template=True,
    grouped=True,  # with the feature gate WorkloadWithJob
    remade_s=JOB_BACK_OFF_MOST_S,
    ranks=Ranks(
        lambda job, _pod: IndexedJobAdapter(job),
        INDEXED_JOBS,
        index=names.COMPLETION_INDEX,
        recommended_as="a batch/v1 Job with completionMode Indexed",
    ),
    gang=GangRules(
        at_once=_at_once,
        left=_left,
        minimum=requested_minimum,
        level=requested_level,
        wants_none=lambda job: job.spec.suspend or job.spec.parallelism == 0,
        is_over=lambda job: holds(job.status.get("conditions", []), "Complete", "Failed"),
        size_of_ended=size_of_ended_world,
        failure=_failure,
        service=_service,
    ),
    admission=Admission(
        own_queue=True,
        additions=lambda job: chain(forgiving(job), native(job)),
        warnings=unforgiven,
        mistakes=contradictions,
        count=("spec", "parallelism"),
    ),
    samples=samples,
    verbs=Verbs(
        stop=("spec", "suspend"),
        stopped=_stopped,
        ended=lambda job: has_condition(job, "Complete", "Failed"),
        sizes=(("spec", "parallelism"), ("spec", "completions")),
        resized=_resized,
        instead={"priority": again("the pods of a Job keep the class of its template")},
    ),
)
CRON_JOB = WorkloadKind(
    CRON_JOBS,
    templates=(("spec", "jobTemplate", "spec", "template"),),
    labelled=True,
    maker=True,
    admission=Admission(copied=("spec", "jobTemplate"), count=("spec", "jobTemplate", "spec", "parallelism")),
    samples=_cron_samples,
)

"""batch/v1 Jobs with indexes: alone, or as parts of a JobSet."""

from collections.abc import Mapping
from typing import Any

from muster.api import names
from muster.api.core import IndexedJob
from muster.api.endpoints import Endpoints, Joined, Run
from muster.api.fields import FieldError
from muster.api.meta import ObjectMeta
from muster.runtime.adapters.base import annotation, label, number
from muster.runtime.plan import Owner
from muster.runtime.values import Value

JOBSET_NAME = "jobset.sigs.k8s.io/jobset-name"
REPLICATED_JOB = "jobset.sigs.k8s.io/replicatedjob-name"
REPLICAS = "jobset.sigs.k8s.io/replicatedjob-replicas"
JOB_INDEX = "jobset.sigs.k8s.io/job-index"


def job_adapter(job: IndexedJob) -> "IndexedJobAdapter":
    """The adapter for a Job: a part of a JobSet has siblings."""
    owner = job.metadata.controller
    return JobSetAdapter(job) if owner and owner.kind == "JobSet" else IndexedJobAdapter(job)


class IndexedJobAdapter:
    """A batch/v1 Job with `completionMode: Indexed`: each index is a rank, and pods are found as `<job>-<index>`."""

    def __init__(self, job: IndexedJob) -> None:
        self._job = job
        self._spec = job.spec

    @property
    def owner(self) -> Owner:
        """The Job."""
        meta = self._job.metadata
        return Owner("batch/v1", "Job", meta.name, meta.namespace, meta.uid)

    @property
    def template(self) -> Mapping[str, Any]:
        """The Job's."""
        return self._spec.template

    @property
    def annotations(self) -> Mapping[str, str]:
        """The Job's."""
        return self._job.metadata.annotations

    def errors(self) -> list[FieldError]:
        """Without an index a pod has no rank; with fewer pods than completions the group is never whole."""
        spec = self._spec
        result = []
        if spec.completion_mode != "Indexed":
            message = f"must be Indexed for {names.FRAMEWORK}, because the index of a pod is its rank"
            result.append(FieldError("spec.completionMode", message, spec.completion_mode))
        if spec.completions is None:
            message = f"must be set to the number of pods for {names.FRAMEWORK}"
            result.append(FieldError("spec.completions", message, reason="Required"))
        elif spec.completions != self._parallelism:
            message = f"must equal completions ({spec.completions}) for {names.FRAMEWORK}: all ranks run together"
            result.append(FieldError("spec.parallelism", message, self._parallelism))
        return result

    def rank(self, pod: ObjectMeta | None) -> Value:
        """The completion index: a label since Kubernetes 1.28, an annotation before that."""
        by_annotation = pod and names.COMPLETION_INDEX not in pod.labels and names.COMPLETION_INDEX in pod.annotations
        return (annotation if by_annotation else label)(names.COMPLETION_INDEX)

    def size(self) -> int:
        """All completions run at once."""
        return self._parallelism if self._spec.completions is None else self._spec.completions

    def subdomain(self) -> str:
        """What the template says, else a Service named as the Job."""
        spec = self._spec.template.get("spec") or {}
        return str(spec.get("subdomain") or self._job.metadata.name)

    def endpoints(self) -> Endpoints:
        """`<job>-<index>.<subdomain>`: the Job controller sets the host names."""
        return Run(f"{self._job.metadata.name}-", f".{self.subdomain()}", self.size())

    @property
    def _parallelism(self) -> int:
        return 1 if self._spec.parallelism is None else self._spec.parallelism


class JobSetAdapter(IndexedJobAdapter):
    """A Job of a JobSet: the group is its ReplicatedJob, whose Jobs follow each other in rank order."""

    @property
    def owner(self) -> Owner:
        """The JobSet, as far as its Job tells."""
        owner = self._job.metadata.controller
        if owner is None:
            return super().owner
        return Owner(owner.api_version, owner.kind, owner.name, self._job.metadata.namespace, owner.uid)

    def errors(self) -> list[FieldError]:
        """Also, the JobSet controller has to say which of its Jobs this is."""
        result = super().errors()
        for key in (JOBSET_NAME, REPLICATED_JOB, REPLICAS, JOB_INDEX):
            text = self._job.metadata.labels.get(key)
            if not text or (key in {REPLICAS, JOB_INDEX} and number(text) is None):
                message = f"must be set by the JobSet controller for {names.FRAMEWORK}"
                result.append(FieldError(f"metadata.labels[{key}]", message, text))
        return result

    def rank(self, pod: ObjectMeta | None) -> Value:
        """The completion index where there is one Job; else counted on from the Jobs before, as a literal."""
        before = self._index * super().size()
        if self._replicas == 1 and not before:
            return super().rank(pod)
        if pod is None:
            return super().rank(pod)
        own = number(pod.labels.get(names.COMPLETION_INDEX) or pod.annotations.get(names.COMPLETION_INDEX))
        return super().rank(pod) if own is None else str(before + own)

    def size(self) -> int:
        """The pods of all Jobs of the ReplicatedJob."""
        return self._replicas * super().size()

    def subdomain(self) -> str:
        """What the JobSet controller put into the template, else a Service named as the JobSet."""
        spec = self._spec.template.get("spec") or {}
        return str(spec.get("subdomain") or self._job.metadata.labels.get(JOBSET_NAME, ""))

    def endpoints(self) -> Endpoints:
        """`<jobset>-<replicated job>-<job index>-<index>.<subdomain>`."""
        labels = self._job.metadata.labels
        head = f"{labels.get(JOBSET_NAME, '')}-{labels.get(REPLICATED_JOB, '')}"
        size = super().size()
        runs = tuple(Run(f"{head}-{job}-", f".{self.subdomain()}", size) for job in range(self._replicas))
        return runs[0] if len(runs) == 1 else Joined(runs)

    @property
    def _replicas(self) -> int:
        return number(self._job.metadata.labels.get(REPLICAS)) or 1

    @property
    def _index(self) -> int:
        return number(self._job.metadata.labels.get(JOB_INDEX)) or 0

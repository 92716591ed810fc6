"""Adapters: what each kind of owner says about its pods: my rank, how many we are, where rank 0 is."""

from typing import Protocol

from muster.api import names
from muster.api.core import IndexedJob
from muster.runtime.fields import FieldError
from muster.runtime.plan import Endpoints, FieldPath, Value


class Adapter(Protocol):
    """One owner, asked by plugins through `Info`."""

    @property
    def workload(self) -> str:
        """The owner as people call it, e.g. `Job train`."""

    def errors(self) -> list[FieldError]:
        """Why the owner's pods cannot form a group; empty when they can."""

    def rank(self) -> Value:
        """How a pod learns its rank, 0-based."""

    def size(self) -> int:
        """How many pods there are."""

    def subdomain(self) -> str:
        """The headless Service under which the pods are found."""

    def endpoints(self) -> Endpoints:
        """The host name of each pod, in rank order; rank 0 comes first."""


class IndexedJobAdapter:
    """A batch/v1 Job with `completionMode: Indexed`: each index is a rank, and pods are found as `<job>-<index>`."""

    def __init__(self, job: IndexedJob) -> None:
        self._job = job
        self._spec = job.spec

    @property
    def workload(self) -> str:
        """`Job <name>`."""
        return f"Job {self._job.metadata.name}"

    def errors(self) -> list[FieldError]:
        """Without an index a pod has no rank; with fewer pods than completions the group is never whole."""
        spec = self._spec
        result = []
        owner = self._job.metadata.controller
        if owner and owner.kind == "JobSet":
            message = f"must not be a JobSet for {names.FRAMEWORK}: a group of several Jobs is not supported"
            result.append(FieldError("metadata.ownerReferences", message, owner.name))
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

    def rank(self) -> Value:
        """The completion index; a label since Kubernetes 1.28."""
        return FieldPath(f"metadata.labels['{names.COMPLETION_INDEX}']")

    def size(self) -> int:
        """All completions run at once."""
        return self._parallelism if self._spec.completions is None else self._spec.completions

    def subdomain(self) -> str:
        """What the template says, else a Service named as the Job."""
        spec = self._spec.template.get("spec") or {}
        return str(spec.get("subdomain") or self._job.metadata.name)

    def endpoints(self) -> Endpoints:
        """`<job>-<index>.<subdomain>`: the Job controller sets the host names."""
        return Endpoints(f"{self._job.metadata.name}-", f".{self.subdomain()}", self.size())

    @property
    def _parallelism(self) -> int:
        return 1 if self._spec.parallelism is None else self._spec.parallelism

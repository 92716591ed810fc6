"""The controller's writers of a Job's objects, one by one, over an API server in memory that notes their writes."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from builders import manifests
from guarded_api import GuardedApi

import controller
from controller.caches import SharedCaches
from controller.job.effects import PodEffects
from controller.job.expectations import Expectations
from controller.job.objects import Groups
from controller.kit import Kit
from muster.api.base import Resource
from muster.api.volcano.batch import JOBS, Job
from muster.api.volcano.scheduling import POD_GROUPS, PodGroup
from muster.kube.errors import Conflict, Forbidden, ServerError, Unreachable
from muster.kube.store import ObjectStore

failing = pytest.mark.parametrize(
    "error",
    [ServerError("broken"), Unreachable("no answer"), Conflict("it has changed"), Forbidden("exceeded quota: q")],
    ids=lambda error: type(error).__name__,
)
"""Each kind of failure of a call."""


class Desk:
    """An API server with Job `n/j` of three pods, and what its writers need besides."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.api = GuardedApi(controller)
        self.client = cast("Any", self.api)
        self.recorder = cast("Any", SimpleNamespace(event=lambda *_: None))
        self.kit, self.caches = Kit(self.client, self.recorder, lambda: self.now_s), SharedCaches(self.client)
        self.expectations = Expectations(lambda: self.now_s)
        self.job: Job = self.add_job()

    def add_job(self) -> Job:
        """Another Job `n/j`, where there is none."""
        spec = {"tasks": [], "minAvailable": 3, "ttlSecondsAfterFinished": 0}
        return cast("Job", self.api.add(JOBS, {"metadata": {"name": "j"}, "spec": spec}))

    def add(self, res: Resource[Any], name: str, metadata: manifests.JSON | None = None, **content: Any) -> Any:
        """An object, which the API server has."""
        return self.api.add(res, {"metadata": {**(metadata or {}), "name": name}, **content})

    def owned(self, by: Job | None = None) -> manifests.JSON:
        """The metadata of a Job's object."""
        return {"ownerReferences": [manifests.job_owner("j", (by or self.job).metadata.uid)]}

    def pod(self, rank: int, by: Job | None = None) -> manifests.JSON:
        """A pod of a Job, as the controller makes it."""
        slot = {"volcano.sh/task-spec": "w", "volcano.sh/task-index": str(rank)}
        meta = {"name": f"j-w-{rank}", "namespace": "n", "annotations": slot, **self.owned(by)}
        return {"metadata": meta, "spec": {"containers": [{"name": "main"}]}}

    def effects(self) -> PodEffects:
        """Creates and deletes pods."""
        return PodEffects(self.client, self.expectations, self.recorder, 1, monotonic_s=lambda: self.now_s)

    def groups(self) -> Groups:
        """PodGroups of Jobs, as the cache shows them."""
        shown = ObjectStore[PodGroup]()
        for group in self.api.all(POD_GROUPS):
            shown.add_object(group)
        return Groups(self.client, shown, ObjectStore(), list, self.expectations)

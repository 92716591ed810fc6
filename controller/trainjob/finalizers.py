"""Runtimes: the finalizer of Kubeflow Trainer before 2.3 is taken off, or no runtime that has it could be deleted."""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from controller.worker import Worker
from muster.api.base import Resource
from muster.api.kubeflow.trainer import GROUP
from muster.api.kubeflow.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from muster.api.kubernetes.meta import Object
from muster.kube.client import Client
from muster.kube.errors import NotFound
from muster.kube.reflector import Reflector

FINALIZER = f"{GROUP}/resource-in-use"
_KINDS = {each.kind: Resource(each.group, each.version, each.plural, each.kind, Object, namespaced=each.namespaced)
          for each in (TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES)}  # fmt: skip


class Finalizers:
    """A worker over runtimes that have the finalizer: `namespace/name`, or `name` for those of the cluster."""

    def __init__(self, client: Client, *, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._of_cluster = Reflector(client, _KINDS["ClusterTrainingRuntime"])
        self._of_namespaces = Reflector(client, _KINDS["TrainingRuntime"])
        self.reflectors: dict[str, Reflector[Any]] = {
            "trainingruntimes": self._of_namespaces,
            "clustertrainingruntimes": self._of_cluster,
        }
        self.handlers: list[tuple[Reflector[Any], Any]] = [(each, self._seen) for each in self.reflectors.values()]
        self.worker = Worker("runtime", self.process, queue="runtime", monotonic_s=monotonic_s)

    def process(self, key: str) -> None:
        """Takes the finalizer off; others stay."""
        reflector = self._of_namespaces if "/" in key else self._of_cluster
        found = reflector.store.get(key)
        if found is None or FINALIZER not in found.metadata.finalizers:
            return
        meta = found.metadata
        others = [each for each in meta.finalizers if each != FINALIZER]
        patch = {"metadata": {"resourceVersion": meta.resource_version, "finalizers": others}}
        kind = _KINDS["TrainingRuntime" if meta.namespace else "ClusterTrainingRuntime"]
        with suppress(NotFound):
            self._client.merge_patch(kind, meta.name, patch, meta.namespace or None)

    def _seen(self, old: Object | None, new: Object | None) -> None:
        del old
        if new and FINALIZER in new.metadata.finalizers:
            self.worker.queue.add(new.metadata.key)

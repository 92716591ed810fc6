"""The finalizer that Kubeflow Trainer before 2.3 has left on runtimes, without which they can be deleted."""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
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
_KINDS: tuple[Resource[Any], ...] = (TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES)


class Finalizers:
    """A worker over runtimes (`namespace/name`, or `name`) with a finalizer of Kubeflow Trainer before 2.3."""

    def __init__(self, client: Client, *, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self.reflectors: dict[str, Reflector[Any]] = {
            each.plural: Reflector(client, replace(each, type=Object)) for each in _KINDS
        }
        self.handlers: list[tuple[Reflector[Any], Any]] = [(each, self._seen) for each in self.reflectors.values()]
        self.worker = Worker("runtime", self.process, monotonic_s=monotonic_s)

    def process(self, key: str) -> None:
        """Takes the finalizer off; others stay."""
        kind: Resource[Any] = TRAINING_RUNTIMES if "/" in key else CLUSTER_TRAINING_RUNTIMES
        found: Object | None = self.reflectors[kind.plural].store.get(key)
        if found is None or FINALIZER not in found.metadata.finalizers:
            return
        meta = found.metadata
        others = [each for each in meta.finalizers if each != FINALIZER]
        patch = {"metadata": {"resourceVersion": meta.resource_version, "finalizers": others}}
        with suppress(NotFound):
            self._client.merge_patch(replace(kind, type=Object), meta.name, patch, meta.namespace or None)

    def _seen(self, old: Object | None, new: Object | None) -> None:
        del old
        if new and FINALIZER in new.metadata.finalizers:
            self.worker.queue.add(new.metadata.key)

"""Queues and runtimes that an installation ships: each leader applies them once, and keeps the changes of users.

During the installation of the chart, the kinds and the webhook do not exist yet, so the leader retries until the API
server accepts the objects.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import structlog
import yaml
from prometheus_client import Gauge

from controller.kit import KeyController, Kit
from muster.api.base import Resource
from muster.api.kubeflow.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from muster.api.kubernetes.core import Lease
from muster.api.volcano.scheduling import QUEUES
from muster.kube.errors import Conflict, Refused

log = structlog.get_logger(__name__)

REFUSED: Final = Gauge(
    "muster_shipped_refused",
    "Queues and runtimes of the chart's values that the API server refuses, by object.",
    ["name"],
)

KINDS: Final[Mapping[tuple[str, str], Resource[Any]]] = {
    (each.api_version, each.kind): each for each in (QUEUES, CLUSTER_TRAINING_RUNTIMES)
}
"""Kinds that can be shipped: cluster-scoped objects that users refer to."""
Manifest = dict[str, Any]


def read_folder(folder: Path) -> list[Manifest]:
    """Return the objects in the YAML files of a folder. Raise a ValueError that lists all mistakes."""
    found: list[Manifest] = []
    errors: list[str] = []
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder; it should contain the objects to apply, as YAML files")
    for file in sorted(folder.glob("*.yaml")):
        try:
            documents = [one for one in yaml.safe_load_all(file.read_text(encoding="utf-8")) if one is not None]
        except (OSError, UnicodeError, yaml.YAMLError) as error:
            errors.append(f"{file} cannot be read: {' '.join(str(error).split())}")
            continue
        errors += [f"{file}: {mistake}" for mistake in map(_mistake, documents) if mistake]
        found += documents
    if errors:
        raise ValueError("; ".join(errors))
    return found


def _mistake(document: Any) -> str:
    """Return the reason why an object cannot be shipped; "" for a valid object."""
    if not isinstance(document, dict):
        return "each document should be an object"
    kind = (document.get("apiVersion"), document.get("kind"))
    if kind not in KINDS:
        known = ", ".join(f"{each.kind} ({each.api_version})" for each in KINDS.values())
        return f"{kind[1]} ({kind[0]}) cannot be shipped; it should be one of {known}"
    metadata = document.get("metadata")
    return "" if isinstance(metadata, dict) and metadata.get("name") else f"a {kind[1]} has no metadata.name"


class Shipped(KeyController):
    """The worker that applies the shipped objects; its keys consist of kind and name.

    Refused objects are reported in Events about the Lease.
    """

    def __init__(self, kit: Kit, manifests: Iterable[Manifest], lease: Lease | None = None) -> None:
        super().__init__(kit, "shipped")
        self._lease = lease
        self._manifests = {f"{each['kind']}/{each['metadata']['name']}": each for each in manifests}

    def replay(self) -> None:
        """Queue every object."""
        for key in self._manifests:
            self.worker.queue.add(key)

    def process(self, key: str) -> None:
        """Apply one object, unless another client has changed its fields."""
        manifest = self._manifests[key]
        resource = KINDS[manifest["apiVersion"], manifest["kind"]]
        try:
            self._client.apply(resource, manifest, force=False)
        except Conflict as conflict:
            log.info("object kept, because another client has changed it", object=key, why=str(conflict))
        except Refused as error:
            REFUSED.labels(key).set(1)
            if self._lease:  # an object that always exists
                self._recorder.event(self._lease, "Warning", "ShippedRefused", f"{key}: {error}")
            raise
        REFUSED.labels(key).set(0)

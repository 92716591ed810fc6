"""Queues and runtimes that an installation ships."""

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from prometheus_client import REGISTRY

from controller.kit import Kit
from controller.shipped import Shipped, read_folder
from muster.api.base import Resource
from muster.api.kubernetes.core import Lease
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.volcano.scheduling import QUEUES
from muster.kube.errors import Conflict, Invalid

QUEUE = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: research}
spec: {weight: 3}
"""


class Cluster:
    """Takes what is applied, unless somebody else has it."""

    def __init__(self, *, taken: bool = False, refused: Exception | None = None) -> None:
        self.refused = refused
        self.applied: list[tuple[str, str, bool]] = []
        self._taken = taken

    def apply(self, resource: Resource[Any], obj: dict[str, Any], *, force: bool) -> None:
        """As the client does."""
        if self.refused:
            raise self.refused
        if self._taken:
            raise Conflict("somebody else manages .spec.weight")
        self.applied.append((resource.kind, obj["metadata"]["name"], force))


def test_each_object_of_each_file_is_read(tmp_path: Path) -> None:
    """Of YAML files only, and those that hold nothing are nothing."""
    (tmp_path / "a.yaml").write_text(f"---\n{QUEUE}---\n{QUEUE.replace('research', 'other')}---\n")
    (tmp_path / "b.txt").write_text("none of ours: [")
    assert [each["metadata"]["name"] for each in read_folder(tmp_path)] == ["research", "other"]


def test_everything_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    """With the file, and what would be right."""
    (tmp_path / "a.yaml").write_text("kind: [")
    (tmp_path / "b.yaml").write_text("apiVersion: v1\nkind: Secret\nmetadata: {name: x}\n---\n- 1\n")
    (tmp_path / "c.yaml").write_text(QUEUE.replace("{name: research}", "{}"))
    with pytest.raises(ValueError, match="cannot be read") as error:
        read_folder(tmp_path)
    for said in (
        "a.yaml cannot be read",
        "Secret (v1) cannot be shipped; it should be one of Queue (scheduling.volcano.sh/v1beta1), Cl",
        "b.yaml: each document should be an object",
        "c.yaml: a Queue has no metadata.name",
    ):
        assert said in str(error.value)
    with pytest.raises(ValueError, match="is not a folder"):
        read_folder(tmp_path / "missing")


def test_it_is_applied_and_what_somebody_changed_stays(tmp_path: Path) -> None:
    """Never by force; a conflict is no failure."""
    (tmp_path / "a.yaml").write_text(QUEUE)
    for cluster, applied in ((Cluster(), [("Queue", "research", False)]), (Cluster(taken=True), [])):
        shipped = Shipped(Kit(cluster, None), read_folder(tmp_path))  # type: ignore[arg-type]  # as much of a client as is used
        shipped.replay()
        key = shipped.worker.queue.get()
        assert key == f"{QUEUES.kind}/research"
        assert shipped.worker.once(key) == "done"
        assert cluster.applied == applied


def test_what_the_api_server_refuses_is_an_event_and_a_metric(tmp_path: Path) -> None:
    """Of the Lease, which always exists; the metric is 0 again once the object is accepted."""
    (tmp_path / "a.yaml").write_text(QUEUE)
    cluster, events = Cluster(refused=Invalid("spec.weight: too small")), Mock()
    lease = Lease(metadata=ObjectMeta(name="muster-controller", namespace="n"))
    shipped = Shipped(Kit(cluster, events), read_folder(tmp_path), lease)  # type: ignore[arg-type]  # as above
    with pytest.raises(Invalid):
        shipped.process("Queue/research")
    events.event.assert_called_once_with(lease, "Warning", "ShippedRefused", "Queue/research: spec.weight: too small")
    assert REGISTRY.get_sample_value("muster_shipped_refused", {"name": "Queue/research"}) == 1
    cluster.refused = None
    shipped.process("Queue/research")
    assert REGISTRY.get_sample_value("muster_shipped_refused", {"name": "Queue/research"}) == 0

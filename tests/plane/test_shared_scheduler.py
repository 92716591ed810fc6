"""A cluster's own scheduler may ask Muster too, about marked pods only."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from gangs import metric
from pairs import ended, replaced, started

from muster.api.core import LEASES, PODS
from muster.api.scheduling import POD_GROUPS, QUEUES
from muster.local import scheduler_config
from muster.local.plane import Plane

pytestmark = pytest.mark.plane
MARKERS = {"muster.dev/member": 1, "muster.dev/binding": 1}


def pod(name: str, limits: dict[str, int], **more: Any) -> dict[str, Any]:
    """A pod of the cluster's own scheduler."""
    container = {"name": "main", "image": "none", "resources": {"limits": limits}}
    return {"metadata": {"name": name, **more.pop("metadata", {})}, "spec": {"containers": [container], **more}}


def test_a_gang_of_marked_pods_is_bound_together_and_ordinary_pods_are_not_asked_about(
    fresh_plane: Callable[..., Plane], tmp_path: Path, wait_for: Callable[..., Any]
) -> None:
    """The extender follows the lease of the cluster's own scheduler."""
    plane = fresh_plane(("etcd", "kube-apiserver", "kwok", "kube-scheduler", "extender"))
    plane.part("kube-scheduler").stop()
    plane.part("extender").stop()
    config = scheduler_config.shared_scheduler(
        kubeconfig=str(plane.kubeconfig), extender_url=plane.site.url("extender")
    )
    file = tmp_path / "shared.yaml"
    file.write_text(yaml.safe_dump(config))
    lease = {"--lease-name": "kube-scheduler", "--lease-namespace": "kube-system"}
    processes = [
        started(replaced(plane.site.command("extender"), lease), tmp_path / "extender.log"),
        started(replaced(plane.site.command("kube-scheduler"), {"--config": file}), tmp_path / "scheduler.log"),
    ]
    client = plane.client()
    try:
        client.create(QUEUES, {"metadata": {"name": "default"}, "spec": {}})
        wait_for(lambda: client.list(LEASES, "kube-system"), 30, "kube-scheduler to lead")
        client.create(PODS, pod("ordinary", {}), "default")
        wait_for(lambda: client.get(PODS, "ordinary", "default").spec.node_name, 30, "the ordinary pod to be bound")
        group = {"metadata": {"name": "gang"}, "spec": {"minMember": 8}, "status": {"phase": "Pending"}}
        client.create(POD_GROUPS, group, "default")
        for rank in range(8):
            member = {
                "annotations": {"scheduling.k8s.io/group-name": "gang"},
                "labels": {"apps.kubernetes.io/pod-index": str(rank)},
            }
            gated = {"schedulingGates": [{"name": "muster.dev/gang"}]}
            limits = MARKERS | {"nvidia.com/gpu": 8}
            client.create(PODS, pod(f"member-{rank}", limits, metadata=member, **gated), "default")
        wait_for(lambda: len({one.spec.node_name for one in client.list(PODS, "default")} - {""}) == 8, 60, "the gang")
        assert metric(plane, "extender", 'muster_filter_total{pod="pinned",verdict="passed"}') == 8
        assert metric(plane, "extender", 'muster_filter_names_total{pod="plain"}') == 0
    finally:
        for process in processes:
            ended(process)

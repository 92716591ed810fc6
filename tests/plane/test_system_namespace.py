"""The namespace of Muster's leases is deleted under a running Muster."""

from collections.abc import Callable
from typing import Any

import pytest
from gang_jobs import job, metric

from muster.api.kubernetes.core import LEASES, NAMESPACES, PODS
from muster.api.names import CONTROLLER_LEASE, SCHEDULER_LEASE, SYSTEM_NAMESPACE
from muster.api.volcano.batch import JOBS
from muster.kube.client import Client
from muster.kube.errors import NotFound
from musterctl.plane.plane import Plane
from musterctl.plane.state import COMPONENTS

pytestmark = [pytest.mark.plane, pytest.mark.long]
WaitFor = Callable[..., Any]


def test_installing_again_brings_everything_back(fresh_plane: Callable[..., Plane], wait_for: WaitFor) -> None:
    """Accounts, roles and Leases go with it; whoever leads does not any more, until somebody installs again."""
    plane = fresh_plane(COMPONENTS)
    client = plane.client()
    wait_for(lambda: metric(plane, "extender", 'muster_leading{pool=""}') == 1, 30, "the extender to lead")
    old = client.get(NAMESPACES, SYSTEM_NAMESPACE).metadata.uid
    client.delete(NAMESPACES, SYSTEM_NAMESPACE)

    def gone() -> bool:
        return old not in {each.metadata.uid for each in client.list(NAMESPACES)}

    wait_for(gone, 60, "the namespace to be gone")
    # Its token is good for nothing: it cannot renew its lease, and ends. A kubelet would start it anew.
    wait_for(lambda: not plane.part("muster-scheduler").alive, 60, "kube-scheduler to lose its lease")
    plane.start()
    for name in (SCHEDULER_LEASE, CONTROLLER_LEASE):
        wait_for(lambda name=name: _held(client, name), 60, f"the lease {name}")
    wait_for(lambda: metric(plane, "extender", 'muster_leading{pool=""}') == 1, 30, "the extender to lead again")
    client.create(JOBS, job("gang", "default", replicas=4, gpus=1), "default")
    wait_for(lambda: sum(bool(pod.spec.node_name) for pod in client.list(PODS, "default")) == 4, 60, "the gang")


def _held(client: Client, lease: str) -> bool:
    try:
        return bool(client.get(LEASES, lease, SYSTEM_NAMESPACE).spec.holder_identity)
    except NotFound:
        return False

"""The namespace of Muster's leases is deleted under a running Muster."""

from collections.abc import Callable
from typing import Any

import pytest
from gangs import job, metric

from muster.api.batch import JOBS
from muster.api.core import LEASES, NAMESPACES, PODS
from muster.api.names import CONTROLLER_LEASE, SCHEDULER_LEASE, SYSTEM_NAMESPACE
from muster.kube.errors import NotFound
from musterctl.plane.components import COMPONENTS
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.plane


def test_it_is_made_again_and_gangs_are_scheduled_without_a_restart(
    fresh_plane: Callable[..., Plane], wait_for: Callable[..., Any]
) -> None:
    """By the controller, whose lease is there; kube-scheduler makes its own lease again, and the extender follows."""
    plane = fresh_plane(COMPONENTS)
    client = plane.client()
    processes = {status.name: status.pid for status in plane.status()}
    wait_for(lambda: metric(plane, "extender", "muster_leading") == 1, 30, "the extender to lead")
    old = client.get(NAMESPACES, SYSTEM_NAMESPACE).metadata.uid
    client.delete(NAMESPACES, SYSTEM_NAMESPACE)

    def made_again() -> bool:
        try:
            leases = [client.get(LEASES, name, SYSTEM_NAMESPACE) for name in (SCHEDULER_LEASE, CONTROLLER_LEASE)]
        except NotFound:
            return False
        return client.get(NAMESPACES, SYSTEM_NAMESPACE).metadata.uid != old and len(leases) == 2

    wait_for(made_again, 60, "the namespace and both leases")
    wait_for(lambda: metric(plane, "extender", "muster_leading") == 1, 30, "the extender to lead again")
    client.create(JOBS, job("gang", "default", replicas=4, gpus=1), "default")
    wait_for(
        lambda: sum(bool(pod.spec.node_name) for pod in client.list(PODS, "default")) == 4, 60, "the gang to be bound"
    )
    assert {status.name: status.pid for status in plane.status()} == processes

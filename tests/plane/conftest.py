"""The real control plane as fixtures.

`plane` is one whole plane for the run: all workers share it, each test in a `namespace` of its own; for tests marked
`api` it is one that has an API server only. `fresh_plane` makes planes of chosen parts for tests that restart, kill or
reconfigure something. `kubectl` and `wait_for` are what tests talk and wait with. A failing test reports the tail of
every part's log. MUSTER_KUBERNETES=1.32 runs the tests on planes of that version, MUSTER_NATIVE_GANGS=1 on planes with
Kubernetes' own gangs.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sharing
from making import KUBERNETES, fresh_plane, module_plane
from ordering import API, SHARED
from planes import (
    NAMESPACE_OF,
    admin,
    client,
    idle_client,
    kubectl,
    make_queue,
    muster,
    namespace,
    pytest_configure,
    pytest_runtest_makereport,
    story,
    wait_for,
)
from tenants import make_tenant

from muster.kube.client import Client
from musterctl.plane.plane import Plane

__all__ = [
    "client", "fresh_plane", "idle_client", "kubectl", "make_queue", "make_tenant", "module_plane", "muster",
    "namespace", "pytest_configure", "pytest_runtest_makereport", "story", "wait_for"
]  # fmt: skip


@pytest.fixture
def plane(request: pytest.FixtureRequest, wait_for: Callable[..., Any]) -> Iterator[Plane]:
    """The plane of this run, which all workers share; by the markers `alone` and `api` it is another one."""
    one, baseline = sharing.plane_of(request.node, KUBERNETES)
    alone = request.node.get_closest_marker("alone")
    if alone:
        baseline.lay_out(alone.kwargs)
    yield one
    if alone:
        baseline.restore(wait_for)
    elif left := baseline.left_by(request.node.stash.get(NAMESPACE_OF, "no namespace")):
        pytest.fail(f"this test leaves {', '.join(left)}")


@pytest.fixture(scope="session")
def shared_plane(pytestconfig: pytest.Config) -> Plane:
    """The plane that all workers share, for fixtures of a whole module."""
    return sharing.obtain(pytestconfig, SHARED, KUBERNETES)[0]


@pytest.fixture(scope="session")
def shared_client(shared_plane: Plane) -> Client:
    """A client of the plane that all workers share, for tests that need no other one."""
    return admin(shared_plane.kubeconfig)


@pytest.fixture(scope="session")
def api_plane(pytestconfig: pytest.Config) -> Plane:
    """The plane of tests marked `api`, for fixtures of a whole module."""
    return sharing.obtain(pytestconfig, API, KUBERNETES)[0]

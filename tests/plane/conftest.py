"""The real control plane as fixtures.

`plane` is one whole plane for the session: every test shares it, in a `namespace` of its own. `fresh_plane` makes
planes of chosen parts for tests that restart, kill or reconfigure something. `kubectl` and `wait_for` are what tests
talk and wait with. A failing test reports the tail of every part's log. MUSTER_KUBERNETES=1.32 runs the tests on planes
of that version, MUSTER_NATIVE_GANGS=1 on planes with Kubernetes' own gangs.
"""

from collections.abc import Iterator

import audits
import pytest
from making import KUBERNETES, fresh_plane, module_plane
from native_gates import with_gates
from planes import (
    PLANES,
    idle_client,
    kubectl,
    make_queue,
    namespace,
    pytest_configure,
    pytest_runtest_makereport,
    story,
    wait_for,
)
from tenants import make_tenant

from musterctl.plane.plane import Plane
from musterctl.plane.state import Options

__all__ = [
    "fresh_plane",
    "idle_client",
    "kubectl",
    "make_queue",
    "make_tenant",
    "module_plane",
    "namespace",
    "pytest_configure",
    "pytest_runtest_makereport",
    "story",
    "wait_for",
]


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[Plane]:
    """The whole plane of this session: 8 nodes of 32 CPUs, 256Gi and 8 GPUs, in 2 racks."""
    root = tmp_path_factory.mktemp("plane")
    one = Plane(root, options=Options(kubernetes=KUBERNETES), bound=True, arguments=with_gates(audits.arguments(root)))
    pytestconfig.stash[PLANES].append(one)
    try:
        one.start()
        yield one
    finally:
        pytestconfig.stash[PLANES].remove(one)
        one.stop()
    assert not audits.forbidden(one), "a right is missing in charts/muster/files/roles"

"""A cluster with real nodes as fixtures.

`cluster` is one for the session, with two nodes of two CPUs each; `plane` is its control plane, and `kubectl`,
`namespace` and `wait_for` are those of the tests on simulated nodes. `jobs` submits what `manifests/` holds and tells
what becomes of it. A failing test reports the tail of every process's log, and what the pods said.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from lacking import pytest_sessionfinish
from planes import PLANES, SECTIONS, Kubectl, kubectl, namespace, pytest_configure, pytest_runtest_makereport, wait_for
from realnode import images, rights
from realnode.cluster import Cluster, prepare
from realnode.jobs import Jobs

from musterctl.plane.plane import Plane

__all__ = ["kubectl", "namespace", "pytest_configure", "pytest_runtest_makereport", "pytest_sessionfinish", "wait_for"]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Skips all tests of this folder where real nodes cannot be had; as this line skips them, one sentence says so."""
    reason = rights.lacking()
    if reason:
        pytest.skip(reason)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """The cluster of this session; its nodes have image `localhost/mpi:1`."""
    prepare()
    one = Cluster(tmp_path_factory.mktemp("real"))
    planes, sections = pytestconfig.stash[PLANES], pytestconfig.stash[SECTIONS]
    planes.append(one.plane)
    sections.append(one.sections)
    try:
        one.start()
        yield one
    finally:
        planes.remove(one.plane)
        sections.remove(one.sections)
        one.stop()


@pytest.fixture(scope="session")
def plane(cluster: Cluster) -> Plane:
    """The control plane of the cluster."""
    return cluster.plane


@pytest.fixture(scope="session")
def torch(cluster: Cluster) -> None:
    """Image `localhost/torch:1` on all nodes."""
    cluster.load(images.TORCH)


@pytest.fixture
def jobs(kubectl: Kubectl, plane: Plane, namespace: str, wait_for: Callable[..., Any]) -> Jobs:
    """The jobs of the test, in its namespace."""
    return Jobs(kubectl, plane.kubeconfig, namespace, wait_for)

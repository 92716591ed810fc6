"""Muster and a real neighbour on one plane, as fixtures.

`module_plane` and `fresh_plane` make planes, as in the tests of Muster alone; a module's own fixture starts a neighbour
on one and gives it to the tests. A failing test reports the tail of every part's log, and of every neighbour's.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from beside.neighbour import Neighbours
from beside.scene import Scene
from gang_jobs import History
from lacking import pytest_sessionfinish
from making import fresh_plane, module_plane
from planes import (
    SECTIONS,
    kubectl,
    make_queue,
    namespace,
    pytest_configure,
    pytest_runtest_makereport,
    story,
    wait_for,
)

from muster.api.volcano.scheduling import QUEUES
from muster.kube.client import Client
from musterctl.plane.plane import Plane

__all__ = [
    "fresh_plane", "kubectl", "make_queue", "module_plane", "namespace", "pytest_configure",
    "pytest_runtest_makereport", "pytest_sessionfinish", "story", "wait_for"
]  # fmt: skip


@pytest.fixture(scope="module")
def neighbours(pytestconfig: pytest.Config) -> Iterator[Neighbours]:
    """Starts programs beside a plane; they end with the tests of the module, or with the plane."""
    one = Neighbours()
    sections = pytestconfig.stash[SECTIONS]
    sections.append(one.sections)
    try:
        yield one
    finally:
        sections.remove(one.sections)
        one.stop()


@pytest.fixture
def queue(client: Client, namespace: str, wait_for: Callable[..., Any]) -> str:
    """A queue of the test's own."""
    client.create(QUEUES, {"metadata": {"name": namespace}, "spec": {}})
    wait_for(lambda: client.get(QUEUES, namespace).status.state == "Open", 30, "the queue to be open")
    return namespace


@pytest.fixture
def history(client: Client, namespace: str) -> Iterator[History]:
    """What became of the test's pods."""
    with History(client, namespace) as record:
        yield record


@pytest.fixture
def scene(plane: Plane, namespace: str, wait_for: Callable[..., Any]) -> Iterator[Scene]:
    """What happens in the test's namespace; in the end what must hold in every scenario is checked."""
    with Scene(plane, namespace, wait_for) as one:
        yield one
        one.check()

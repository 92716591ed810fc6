"""The real control plane as fixtures.

`plane` is one whole plane for the session: every test shares it, in a `namespace` of its own. `fresh_plane` makes
planes of chosen parts for tests that restart, kill or reconfigure something. `kubectl` and `wait_for` are what tests
talk and wait with. A failing test reports the tail of every part's log. MUSTER_KUBERNETES=1.32 runs the tests on planes
of that version.
"""

import contextlib
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import audits
import pytest
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

from musterctl.plane.plane import Plane
from musterctl.plane.state import COMPONENTS, Options

KUBERNETES = os.environ.get("MUSTER_KUBERNETES", "")
"""The version on which these tests run, e.g. 1.32; empty for the newest."""

__all__ = [
    "idle_client",
    "kubectl",
    "make_queue",
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
    one = Plane(root, options=Options(kubernetes=KUBERNETES), bound=True, arguments=audits.arguments(root))
    pytestconfig.stash[PLANES].append(one)
    try:
        one.start()
        yield one
    finally:
        pytestconfig.stash[PLANES].remove(one)
        one.stop()
    assert not audits.forbidden(one), "a right is missing in charts/muster/files/roles"


@pytest.fixture
def fresh_plane(tmp_path: Path, pytestconfig: pytest.Config) -> Iterator[Callable[..., Plane]]:
    """Makes planes of chosen parts, started unless told otherwise, and ends them after the test."""
    with _maker(tmp_path, pytestconfig) as make:
        yield make


@pytest.fixture(scope="module")
def module_plane(
    tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator[Callable[..., Plane]]:
    """Like `fresh_plane`, for planes that all tests of a module share."""
    with _maker(tmp_path_factory.mktemp("module"), pytestconfig) as make:
        yield make


@contextlib.contextmanager
def _maker(folder: Path, config: pytest.Config) -> Iterator[Callable[..., Plane]]:
    """`make(parts, start=True, arguments=None, settings=None, **options)`; each plane is stopped in the end.

    Its processes must not have asked for anything that the chart's roles do not grant.
    """
    made: list[Plane] = []

    def make(
        wanted: Collection[str] = COMPONENTS,
        *,
        start: bool = True,
        arguments: Mapping[str, Sequence[str]] | None = None,
        settings: Mapping[str, Mapping[str, object]] | None = None,
        **options: Any,
    ) -> Plane:
        root = folder / f"plane-{len(made)}"
        more = audits.arguments(root)
        for part, each in (arguments or {}).items():
            more[part] = [*more.get(part, ()), *each]
        asked = Options(**{"kubernetes": KUBERNETES, **options})
        one = Plane(root, wanted, asked, bound=True, arguments=more, settings=settings)
        made.append(one)
        config.stash[PLANES].append(one)
        if start:
            one.start()
        return one

    try:
        yield make
    finally:
        for one in made:
            config.stash[PLANES].remove(one)
            one.stop()
    for one in made:
        assert not audits.forbidden(one), "a right is missing in charts/muster/files/roles"

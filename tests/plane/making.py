"""Planes that tests make for themselves: `fresh_plane` for one test, `module_plane` for those of a module.

A conftest imports the two fixtures by name. MUSTER_KUBERNETES=1.32 makes planes of that version.
"""

import contextlib
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import audits
import pytest
from native_gates import with_gates
from planes import PLANES
from sharing import one_start_at_a_time

from musterctl.plane.plane import Plane
from musterctl.plane.state import COMPONENTS, PlaneOptions

os.environ.setdefault("GOGC", "400")
"""Inherited by the programs of Kubernetes: kube-apiserver takes a fifth less CPU, and more memory."""
KUBERNETES = os.environ.get("MUSTER_KUBERNETES", "")
"""The version on which these tests run, e.g. 1.32; empty for the newest."""
SERVES_NATIVE_GROUPS = KUBERNETES in {"", "1.37"}
"""Whether it has native PodGroups as Muster reads them, behind a feature gate."""


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
    """`make(parts, start=True, traced=False, arguments=None, settings=None, **options)`; each is stopped in the end.

    Its processes must not have asked for anything that the chart's roles do not grant.
    """
    made: list[Plane] = []

    def make(
        wanted: Collection[str] = COMPONENTS,
        *,
        start: bool = True,
        traced: bool = False,
        arguments: Mapping[str, Sequence[str]] | None = None,
        settings: Mapping[str, Mapping[str, object]] | None = None,
        **options: Any,
    ) -> Plane:
        root = folder / f"plane-{len(made)}"
        more = audits.arguments(root, traced=traced)
        for part, each in (arguments or {}).items():
            more[part] = [*more.get(part, ()), *each]
        asked = PlaneOptions(**{"kubernetes": KUBERNETES, **options})
        with one_start_at_a_time(config):  # a plane chooses free ports when it is made, and takes them at its start
            one = Plane(root, wanted, asked, bound=True, arguments=with_gates(more), settings=settings)
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

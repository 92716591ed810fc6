"""A cluster with real nodes and nothing of Muster in it, and Muster's release as users make it, as fixtures.

`cluster` is one for the session. `release` installs the chart for the tests of a module and removes it after them. A
failing test reports the tail of every process's log, and what Muster's pods said.
"""

from collections.abc import Iterator

import pytest
from installed import figures, images, needs
from installed.chart import Release
from installed.cluster import Cluster
from lacking import pytest_sessionfinish
from planes import SECTIONS, pytest_configure, pytest_runtest_makereport, wait_for

__all__ = ["pytest_configure", "pytest_runtest_makereport", "pytest_sessionfinish", "wait_for"]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Skips all tests of this folder where real nodes cannot be had; as this line skips them, one sentence says so."""
    reason = needs.lacking()
    if reason:
        pytest.skip(reason)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """The cluster of this session."""
    archives = [*images.small(tmp_path_factory.mktemp("images")), images.muster()]
    one = Cluster(tmp_path_factory.mktemp("install"))
    sections = pytestconfig.stash[SECTIONS]
    sections.append(one.sections)
    try:
        with figures.timed("cluster: from nothing to two Ready nodes"):
            one.start(archives)
        yield one
    finally:
        sections.remove(one.sections)
        one.stop()


@pytest.fixture(scope="module")
def release(cluster: Cluster) -> Iterator[Release]:
    """The release, not installed yet; what the tests of the module leave of it is removed."""
    one = Release(cluster)
    yield one
    one.remove()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints what was measured."""
    for line in figures.lines():
        terminalreporter.write_line(line)

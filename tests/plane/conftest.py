"""The real control plane as fixtures.

`plane` is one whole plane for the session: every test shares it, in a `namespace` of its own. `fresh_plane` makes
planes of chosen parts for tests that restart, kill or reconfigure something. `kubectl` and `wait_for` are what tests
talk and wait with. A failing test reports the tail of every part's log.
"""

import contextlib
import json
import time
import uuid
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from jobs import Story

from musterctl.plane.components import COMPONENTS
from musterctl.plane.plane import Plane
from musterctl.plane.state import Options

T = TypeVar("T")
_PLANES = pytest.StashKey[list[Plane]]()
_LOG_LINES = 15
_POLL_S = 0.05


def pytest_configure(config: pytest.Config) -> None:
    """Remembers the planes of this run, for the reports of failing tests."""
    config.stash[_PLANES] = []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Adds the tail of every part's log to the report of a failing test."""
    report: Any = yield
    if report.failed:
        for plane in item.config.stash[_PLANES]:
            for status in plane.status():
                title = f"{status.name} ({status.word}) in {plane.root}"
                report.sections.append((title, plane.part(status.name).log_tail(_LOG_LINES)))
    return report


class Kubectl:
    """Runs kubectl against one plane."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane

    def __call__(self, *arguments: str, stdin: Any = "", check: bool = True) -> str:
        """Its output; `stdin` may be an object, which is sent as JSON. Fails with kubectl's own words."""
        text = stdin if isinstance(stdin, str) else json.dumps(stdin)
        result = self._plane.kubectl(*arguments, stdin=text)
        if check and result.returncode:
            pytest.fail(f"kubectl {' '.join(arguments)}: {result.stderr.strip()}")
        return result.stdout if not result.returncode else result.stderr

    def json(self, *arguments: str) -> Any:
        """What `kubectl … --output=json` prints."""
        return json.loads(self(*arguments, "--output=json"))

    def create(self, namespace: str, *objects: dict[str, Any]) -> None:
        """Creates the objects in the namespace."""
        content = {"apiVersion": "v1", "kind": "List", "items": objects}
        self("create", f"--namespace={namespace}", "--filename=-", stdin=content)

    def apply(self, *objects: dict[str, Any]) -> None:
        """Applies the objects."""
        self("apply", "--server-side", "--filename=-", stdin={"apiVersion": "v1", "kind": "List", "items": objects})


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[Plane]:
    """The whole plane of this session: 8 nodes of 32 CPUs, 256Gi and 8 GPUs, in 2 racks."""
    one = Plane(tmp_path_factory.mktemp("plane"), bound=True)
    pytestconfig.stash[_PLANES].append(one)
    try:
        one.start()
        yield one
    finally:
        pytestconfig.stash[_PLANES].remove(one)
        one.stop()


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
    """`make(parts, start=True, **options)`; every plane that it made is stopped in the end."""
    made: list[Plane] = []

    def make(wanted: Collection[str] = COMPONENTS, *, start: bool = True, **options: Any) -> Plane:
        one = Plane(folder / f"plane-{len(made)}", wanted, Options(**options), bound=True)
        made.append(one)
        config.stash[_PLANES].append(one)
        if start:
            one.start()
        return one

    try:
        yield make
    finally:
        for one in made:
            config.stash[_PLANES].remove(one)
            one.stop()


@pytest.fixture
def kubectl(plane: Plane) -> Kubectl:
    """Runs kubectl on the session's plane."""
    return Kubectl(plane)


@pytest.fixture
def namespace(kubectl: Kubectl) -> Iterator[str]:
    """The name of a fresh namespace, deleted after the test without waiting for the end of it."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    kubectl("create", "namespace", name)
    yield name
    kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="session")
def wait_for() -> Callable[..., Any]:
    """`wait_for(condition, timeout_s=30, what="…")`: what the condition returns as soon as that is true."""

    def wait(condition: Callable[[], T], timeout_s: float = 30.0, what: str = "") -> T:
        deadline = time.monotonic() + timeout_s
        while True:
            value = condition()
            if value:
                return value
            if time.monotonic() > deadline:
                pytest.fail(f"not within {timeout_s:g} s: {what or condition}; the last value was {value!r}")
            time.sleep(_POLL_S)

    return wait


@pytest.fixture
def story(plane: Plane, namespace: str) -> Iterator[Story]:
    """What happens in the test's namespace."""
    with Story(plane.client(), namespace) as one:
        yield one

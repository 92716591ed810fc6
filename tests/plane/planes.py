"""What every test folder with a control plane shares: kubectl, a namespace, waiting, and logs in reports.

A conftest imports what it wants of this by name, and has a fixture `plane` of its own. A failing test reports the tail
of every part's log.
"""

import json
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest
from click.testing import CliRunner
from jobs import Story

from muster.api.kubernetes.core import NAMESPACES, PODS
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import QUEUES, Queue
from muster.kube.client import Client
from muster.kube.errors import Invalid
from musterctl.app import main
from musterctl.plane.plane import Plane

T = TypeVar("T")
PLANES = pytest.StashKey[list[Plane]]()
"""The planes of this run, for the reports of failing tests."""
NAMESPACE_OF = pytest.StashKey[str]()
"""The namespace of a test."""
SECTIONS = pytest.StashKey[list[Callable[[], Iterable[tuple[str, str]]]]]()
"""What else such a report tells: functions that give titles and texts."""
_LOG_LINES = 15
_QUEUE_GOES_S = 30.0
_FIRST_POLL_S = 0.02
_LONGEST_POLL_S = 0.25
"""Intervals between checks grow by half up to this: a check costs a request or two, on cores that others need."""


def pytest_configure(config: pytest.Config) -> None:
    """Prepares for the planes of this run."""
    config.stash.setdefault(PLANES, [])  # this is called for every conftest that has it
    config.stash.setdefault(SECTIONS, [])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Adds the tail of every part's log, and what else there is to tell, to the report of a failing test."""
    report: Any = yield
    if report.failed:
        for sections in item.config.stash[SECTIONS]:
            report.sections.extend(sections())
        for plane in item.config.stash[PLANES]:
            for part in plane.parts.values():
                title = f"{part.name} ({part.word}) in {plane.root}"
                report.sections.append((title, part.log_tail(_LOG_LINES)))
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


@pytest.fixture
def kubectl(plane: Plane) -> Kubectl:
    """Runs kubectl on the session's plane."""
    return Kubectl(plane)


class Muster:
    """Types commands of Muster's for a plane; gives what they print, errors too."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig

    def __call__(self, *arguments: str, code: int = 0, stdin: str = "", kubeconfig: Path | None = None) -> str:
        """What the command prints, which ends with this exit code."""
        place = arguments.index("--") if "--" in arguments else len(arguments)
        given = [*arguments[:place], f"--kubeconfig={kubeconfig or self._kubeconfig}", *arguments[place:]]
        result = CliRunner().invoke(main, given, input=stdin)
        assert result.exit_code == code, result.output
        return result.output


@pytest.fixture
def muster(plane: Plane) -> Muster:
    """Types commands of Muster's for the session's plane."""
    return Muster(plane.kubeconfig)


@cache
def admin(kubeconfig: Path) -> Client:
    """The client of the fixtures of all tests: to load one for each costs as much as what they ask."""
    return Client.load(kubeconfig)


@pytest.fixture
def client(plane: Plane) -> Iterator[Client]:
    """A client of the test's own, with all rights."""
    with closing(plane.client()) as one:
        yield one


@pytest.fixture
def namespace(plane: Plane, request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a fresh namespace, deleted after the test without waiting for the end of it."""
    name = request.node.stash[NAMESPACE_OF] = f"test-{uuid.uuid4().hex[:8]}"
    client = admin(plane.kubeconfig)
    client.create(NAMESPACES, {"metadata": {"name": name}})
    yield name
    client.delete(NAMESPACES, name)


@pytest.fixture(scope="session")
def wait_for() -> Callable[..., Any]:
    """`wait_for(condition, timeout_s=60, what="…")`: what the condition returns as soon as that is true.

    `what` may be a function that tells what there is when the time is over.
    """

    def wait(condition: Callable[[], T], timeout_s: float = 60.0, what: str | Callable[[], str] = "") -> T:
        deadline, poll_s = time.monotonic() + timeout_s, _FIRST_POLL_S
        while True:
            value = condition()
            if value:
                return value
            if time.monotonic() > deadline:
                told = what() if callable(what) else what
                pytest.fail(f"not within {timeout_s:g} s: {told or condition}; the last value was {value!r}")
            time.sleep(poll_s)
            poll_s = min(1.5 * poll_s, _LONGEST_POLL_S)

    return wait


@pytest.fixture
def story(plane: Plane, namespace: str) -> Iterator[Story]:
    """What happens in the test's namespace."""
    with Story(plane.client(), namespace) as one:
        yield one


@pytest.fixture
def make_queue(plane: Plane, namespace: str) -> Iterator[Callable[..., Queue]]:
    """Makes queues named after the test's namespace; in the end its workloads go, then they, the last first."""
    client, made = plane.client(), list[str]()

    def make(suffix: str, **spec: Any) -> Queue:
        one = client.create(QUEUES, {"metadata": {"name": f"{namespace}-{suffix}"}, "spec": spec})
        made.append(one.metadata.name)
        return one

    yield make
    if made:
        drop_workloads(plane, namespace)
    for name in reversed(made):
        drop_queue(client, name)


def drop_workloads(plane: Plane, namespace: str) -> None:
    """Deletes what has pods in a namespace: its queues can go then."""
    kinds = "trainjobs,jobs.batch.volcano.sh,jobs.batch,deployments,replicasets,statefulsets,pods"
    plane.kubectl("delete", kinds, "--all", "--wait=false", f"--namespace={namespace}")


def drop_queue(client: Client, name: str) -> None:
    """Deletes a queue as soon as its pods have gone, and the queues below it."""
    deadline = time.monotonic() + _QUEUE_GOES_S
    while True:
        try:
            return client.delete(QUEUES, name)
        except Invalid:
            if time.monotonic() > deadline:
                raise
            time.sleep(_LONGEST_POLL_S)


@pytest.fixture
def idle_client(plane: Plane, namespace: str, wait_for: Callable[..., Any]) -> Iterator[Client]:
    """A client of a plane on which nobody else runs; afterwards it is whole again, and the Jobs are gone."""
    client = plane.client()
    wait_for(lambda: not any(pod.spec.node_name for pod in client.list(PODS)), 60, "the nodes to be free")
    yield client
    plane.mend()
    for each in client.list(JOBS, namespace):
        client.delete(JOBS, each.metadata.name, namespace)

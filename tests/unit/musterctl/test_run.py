"""`muster run`: a pod with a terminal, which does not outlive the command."""

import subprocess
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from muster.api.base import Resource
from muster.api.kubernetes.core import PODS, Pod
from muster.api.volcano.scheduling import POD_GROUPS, PodGroup
from muster.kube.errors import NotFound, Unreachable
from musterctl.app import main
from musterctl.commands import run
from musterctl.output.listing import INTERRUPTED

JSON = dict[str, Any]
RUNS: JSON = {"phase": "Running"}
WAITS: JSON = {"phase": "Pending"}
WHY = {"type": "Unschedulable", "status": "True", "reason": "QueueFull", "message": "queue default is full"}


def ended(code: int, **status: Any) -> JSON:
    """The status of a pod whose container has ended with this code."""
    state = {"terminated": {"exitCode": code}}
    return {
        "phase": "Failed" if code else "Succeeded",
        "containerStatuses": [{"name": "main", "state": state}],
        **status,
    }


class Api:
    """Shows these states of the pod one after another, the last one again and again; an error is raised."""

    def __init__(self, *states: JSON | BaseException) -> None:
        self.states = [*states]
        self.made: JSON = {}
        self.deleted: list[str] = []

    def create(self, _resource: Resource[Any], content: JSON, namespace: str, **_: Any) -> Pod:
        """Keep the pod."""
        self.made = {**content, "metadata": {**content["metadata"], "namespace": namespace, "uid": "u"}}
        return msgspec.convert(self.made, Pod)

    def get(self, resource: Resource[Any], _name: str, _namespace: str) -> Any:
        """The next state of the pod, or the PodGroup of a pod that waits."""
        if resource is POD_GROUPS:
            meta = {"name": "podgroup-u", "namespace": "ns", "uid": "g"}
            return msgspec.convert({"metadata": meta, "status": {"phase": "Inqueue", "conditions": [WHY]}}, PodGroup)
        if resource is not PODS:
            raise NotFound("none")
        state = self.states[0]
        self.states = self.states[1:] or self.states
        if isinstance(state, BaseException):
            raise state
        return msgspec.convert({**self.made, "status": state}, Pod)

    def delete(self, _resource: Resource[Any], name: str, _namespace: str, *, uid: str) -> None:
        """Note the deletion."""
        assert uid == "u"
        self.deleted.append(name)

    def log_lines(self, *_: Any, **__: Any) -> Sequence[str]:
        """The output of the pod."""
        return ["hello"]


Runs = Callable[..., tuple[Result, Api]]


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    """Runs the command over these states of its pod."""

    def execute(*arguments: str, states: Sequence[JSON | BaseException]) -> tuple[Result, Api]:
        api = Api(*states)
        monkeypatch.setattr(run, "connect_in", lambda *_: (api, "ns"))
        monkeypatch.setattr(run, "POLL_S", 0.0)
        result = CliRunner().invoke(main, ["run", "--pod=p", *arguments])
        assert api.deleted == ["p"], "whatever happens"
        return result, api

    return execute


def test_the_pod_is_what_was_asked_for(runs: Runs) -> None:
    """Its queue, devices, class and times."""
    given = ("--gpus=2", "--queue=q", "--priority=high", "--time=4h", "--expected-runtime=90m", "--image=i")
    result, api = runs(*given, "--", "train", "--gpus=9", states=[RUNS, RUNS, ended(0)])
    assert (result.exit_code, result.stdout) == (0, "hello\n")
    metadata, spec = api.made["metadata"], api.made["spec"]
    assert metadata["labels"] == {"muster.dev/queue": "q"}
    assert metadata["annotations"] == {"muster.dev/expected-runtime": "5400s"}
    assert (spec["priorityClassName"], spec["activeDeadlineSeconds"]) == ("high", 4 * 3600)
    [container] = spec["containers"]
    assert (container["image"], container["command"]) == ("i", ["train", "--gpus=9"])
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "2"}


def test_while_it_waits_the_reason_is_on_the_screen(runs: Runs) -> None:
    """Once, although it is asked for again and again; the exit code is the command's."""
    result, _ = runs(states=[WAITS, WAITS, RUNS, ended(3)])
    assert result.stderr == "p: Waiting: queue default is full\n"
    assert result.exit_code == 3


def test_an_api_server_that_restarts_ends_nothing(runs: Runs) -> None:
    """The pod keeps its place in the queue, and what it has done."""
    lost = Unreachable("no answer from the API server")
    result, _ = runs(states=[WAITS, lost, WAITS, RUNS, lost, RUNS, lost, ended(3)])
    assert (result.exit_code, result.stderr) == (3, "p: Waiting: queue default is full\n")


@pytest.mark.parametrize(("states", "code", "words"), [
    ([WAITS, KeyboardInterrupt()], INTERRUPTED, ""),
    ([WAITS, NotFound("none")], 1, "pod p was evicted or deleted"),
    ([ended(137, reason="DeadlineExceeded", message="too long")], 1, "DeadlineExceeded: too long"),
])  # fmt: skip
def test_it_leaves_no_pod_behind(runs: Runs, states: list[Any], code: int, words: str) -> None:
    """After Ctrl-C, and after each other end."""
    result, _ = runs(states=states)
    assert result.exit_code == code
    assert words in result.stderr


@pytest.mark.parametrize(("attached", "output"), [(0, ""), (1, "hello\n")])
def test_with_a_terminal_kubectl_attaches(
    runs: Runs, monkeypatch: pytest.MonkeyPatch, attached: int, output: str
) -> None:
    """If it cannot, as the command has ended already, its output is shown."""
    asked: list[list[str]] = []

    def attach(command: list[str], **_: Any) -> Any:
        asked.append(command)
        return SimpleNamespace(returncode=attached)

    monkeypatch.setattr(subprocess, "run", attach)
    monkeypatch.setattr(run, "on_terminal", lambda: True)
    monkeypatch.setattr(run, "_kubectl", lambda _: "kubectl")
    result, api = runs("--kubeconfig=/dev/null", states=[RUNS, ended(0)])
    assert (result.exit_code, result.stdout) == (0, output)
    assert asked == [
        ["kubectl", "--kubeconfig=/dev/null", "attach", "--namespace=ns", "--stdin", "--tty", "--quiet", "p"]
    ]
    assert api.made["spec"]["containers"][0]["tty"] is True

"""`muster train` is a group whose command `run` needs no name."""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import click
import msgspec
import pytest
from builders import pod as a_pod
from click.testing import CliRunner

from muster.api.base import Resource
from muster.api.kubeflow.trainer import TRAIN_JOBS, TrainJob
from muster.api.kubernetes.core import PODS, Pod
from muster.api.kubernetes.meta import ObjectMeta
from muster.kube.client import Client
from muster.kube.errors import Forbidden, NotFound, Unreachable
from muster.kube.loop import ENDED
from musterctl.app import main
from musterctl.commands import train
from musterctl.commands.train import Logs, follow, state_text
from musterctl.output.listing import INTERRUPTED


def said(*arguments: str) -> str:
    """What a command prints."""
    return CliRunner().invoke(main, ["train", *arguments]).output


@pytest.mark.parametrize("before", [(), ("run",), ("--nodes", "4"), ("run", "--nodes=4")], ids=" ".join)
def test_a_file_is_run(before: tuple[str, ...], tmp_path: Path) -> None:
    """With and without the word, wherever the options stand; words behind -- are the file's."""
    file = tmp_path / "list.py"
    assert f"{file} cannot be read" in said(*before, str(file), "--", "stop")
    file.write_text("def")
    assert f"{file} is not Python" in said(*before, str(file), "--", "stop")


def test_commands_are_commands() -> None:
    """Their names are no files, and the help lists them."""
    assert "Usage: main train stop" in said("stop", "--help")
    shown = said("--help")
    for name in ("run", "list", "logs", "attach", "stop", "resume"):
        assert f"\n  {name} " in shown


def test_its_time_also_counts_while_it_waits() -> None:
    """Its help says so: a TrainJob has no field for the deadline of its pods, as `job run` sets it."""
    assert "also counts while it waits" in " ".join(said("run", "--help").split())
    job_run = CliRunner().invoke(main, ["job", "run", "--help"]).output
    assert "time limit of the pods" in " ".join(job_run.split())


@pytest.mark.parametrize(
    ("error", "words"),
    [(Forbidden("no"), "worker-0: its log cannot be read: no\n"), (Unreachable("it is over", reason=ENDED), "")],
)
def test_a_log_that_cannot_be_read(error: Exception, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """That is said, but where the command itself has come to its end."""

    def lines(*_: str) -> Iterator[str]:
        raise error
        yield  # a generator, as the client's is

    logs = Logs(cast("Client", SimpleNamespace(log_lines=lines)), "n")
    logs.follow(Pod(metadata=ObjectMeta(name="worker-0", uid="u")))
    logs.finish()
    assert capsys.readouterr().err == words


def train_job(*conditions: str, suspend: bool = False, **counts: dict[str, int]) -> TrainJob:
    """A TrainJob with these conditions, and with these numbers of pods by replicated job."""
    none = dict.fromkeys(("ready", "succeeded", "failed", "active", "suspended"), 0)
    status = {
        "conditions": [
            {"type": each, "status": "True", "message": f"{each} it is", "reason": "", "lastTransitionTime": ""}
            for each in conditions
        ],
        "jobsStatus": [{"name": name.replace("_", "-"), **none, **each} for name, each in counts.items()],
    }
    meta = {"name": "fit", "namespace": "n", "uid": "u"}
    spec = {"runtimeRef": {"name": "r"}, "suspend": suspend}
    return msgspec.convert({"metadata": meta, "spec": spec, "status": status}, TrainJob)


@pytest.mark.parametrize(("found", "words"), [
    (train_job("Complete", "Failed"), "complete"),
    (train_job("Failed"), "failed: Failed it is"),
    (train_job("Blocked", suspend=True), "blocked: Blocked it is"),
    (train_job(suspend=True, node={"ready": 1}), "suspended"),
    (train_job(node={"ready": 1}, launcher={"succeeded": 1}), "runs"),
    (train_job(node={"ready": 1}, dataset_initializer={"active": 1}), "waits for dataset-initializer"),
    (train_job(node={"active": 1}, dataset_initializer={"succeeded": 1}), "waits: no room"),
    (train_job(), "waits: no room"),
])  # fmt: skip
def test_the_state_of_a_train_job_in_words(found: TrainJob, words: str) -> None:
    """Its end counts more than all else; why its gang waits is asked only where it does."""
    asked: list[int] = []

    def why() -> str:
        asked.append(1)
        return "no room"

    assert state_text(found, why) == words
    assert bool(asked) == words.startswith("waits:")
    assert state_text(train_job(), lambda: "") == "waits for its pods"


class Api:
    """Shows these states of a TrainJob one after another, its pods and their log; an error is raised in its turn."""

    def __init__(self, *states: TrainJob | Exception, pods: Sequence[Pod] = ()) -> None:
        self.states = [*states]
        self.pods = pods

    def get(self, resource: Resource[Any], _name: str, _namespace: str) -> Any:
        """The next state; nothing else is there."""
        if resource is not TRAIN_JOBS:
            raise NotFound("none")
        state = self.states.pop(0)
        if isinstance(state, Exception):
            raise state
        return state

    def list(self, resource: Resource[Any], namespace: str, label_selector: str) -> Sequence[Pod]:
        """The pods of rank 0."""
        assert (resource, namespace) == (PODS, "n")
        assert label_selector == (
            "jobset.sigs.k8s.io/jobset-name=fit,jobset.sigs.k8s.io/replicatedjob-name=node,"
            "batch.kubernetes.io/job-completion-index=0"
        )
        return self.pods

    def log_lines(self, pod: str, namespace: str, container: str) -> Iterator[str]:
        """What a pod prints."""
        yield f"{namespace}/{pod} {container}"


def pod(name: str, phase: str, created: str) -> Pod:
    """A pod of rank 0."""
    return a_pod(name, "n", phase=phase, uid=name, created=created)


@pytest.mark.parametrize(("end", "good"), [("Complete", True), ("Failed", False)])
def test_a_training_is_followed_to_its_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *, end: str, good: bool
) -> None:
    """Each state is told once, also over an API server that does not answer; the log is that of the latest pod."""
    monkeypatch.setattr(train.time, "sleep", lambda _: None)
    pods = [pod("old", "Failed", "1"), pod("new", "Running", "2"), pod("newest", "Pending", "3")]
    runs = train_job(node={"ready": 1})
    api: Any = Api(train_job(), train_job(), Unreachable("no"), runs, runs, train_job(end), pods=pods)
    assert follow(api, train_job(), ["node"], logs=True) is good
    shown = capsys.readouterr()
    assert shown.out == "n/new node\n"
    words = "complete" if good else "failed: Failed it is"
    assert shown.err.splitlines() == ["fit: waits for its pods", "fit: runs", f"fit: {words}"]
    assert api.states == []
    with pytest.raises(click.ClickException, match="TrainJob fit was deleted"):
        follow(cast("Client", Api(NotFound("gone"))), train_job(), ["node"], logs=False)


@pytest.mark.parametrize(("end", "code"), [(True, None), (False, 1), (KeyboardInterrupt(), INTERRUPTED)])
def test_the_end_of_a_training_is_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], end: Any, code: int | None
) -> None:
    """Whoever stops watching is told that it goes on."""

    def ended(*_: Any, **__: Any) -> Any:
        if isinstance(end, BaseException):
            raise end
        return end

    monkeypatch.setattr(train, "follow", ended)
    with nullcontext() if code is None else pytest.raises(SystemExit, match=str(code)):
        train.watch_to_the_end(cast("Client", None), train_job(), ["node"], logs=True)
    goes_on = "\nfit keeps running; to end it: kubectl delete trainjob fit -n n\n"
    assert capsys.readouterr().err == (goes_on if code == INTERRUPTED else "")

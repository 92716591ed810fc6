"""Names that need not be typed: that of the only plane, and those of objects, which a shell completes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.shell_completion import ShellComplete
from loopback_server import Loopback, serving

from musterctl import cluster
from musterctl.app import main
from musterctl.cluster import Where, only_name
from musterctl.plane import state
from musterctl.plane.state import PlaneOptions

QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
PODS = "/api/v1/namespaces/team/pods"
TRAIN_JOBS = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs"
OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u"}
OBJECTS: dict[str, list[Any]] = {
    QUEUES: [{"metadata": {"name": name}} for name in ("team-b", "team-a", "root")],
    GROUPS: [{"metadata": {"name": "podgroup-u", "ownerReferences": [OWNER]}}],
    PODS: [{"metadata": {"name": "train-0"}}],
    TRAIN_JOBS: [{"metadata": {"name": "fit"}}],
}


class Lists(Loopback):
    """Lists of objects by their path."""

    def reply(self) -> None:
        """Answer with the list."""
        self.answer({"metadata": {}, "items": OBJECTS[self.path.partition("?")[0]]})


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[Path]:
    """A cluster that lists."""
    path = tmp_path / "kubeconfig"
    with serving(Lists, path):
        yield path


def completed(*words: str, incomplete: str = "") -> list[str]:
    """What a shell would offer."""
    shell = ShellComplete(main, {}, "muster", "_MUSTER_COMPLETE")
    return [each.value for each in shell.get_completions([*words], incomplete)]


def test_names_of_objects_are_completed(kubeconfig: Path) -> None:
    """Of the kind, the namespace and the cluster that the line has chosen so far."""
    chosen = f"--kubeconfig={kubeconfig}"
    assert completed("queue", "close", chosen, incomplete="team") == ["team-a", "team-b"]
    assert completed("explain", chosen) == completed("explain", chosen, "job") == ["train"]
    assert completed("explain", chosen, "gang") == ["podgroup-u"]
    assert completed("explain", chosen, "-n", "team", "pod", incomplete="t") == ["train-0"]
    assert completed("logs", chosen) == ["train"]
    assert completed("train", "stop", chosen, incomplete="f") == ["fit"]
    assert completed("ps", chosen, "--queue", incomplete="r") == ["root"]
    assert completed("queue", "update", chosen, incomplete="r") == ["root"]
    assert completed("queue", "delete", chosen, incomplete="r") == ["root"]
    assert completed("restart", incomplete="ext") == ["extender"]


def test_a_cluster_that_does_not_answer_has_no_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell shows nothing in the middle of a line."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "missing"))
    assert completed("queue", "close") == []


def plane(name: str) -> None:
    """A plane that is attached to a cluster, and is not running."""
    state.create(state.folder_of(name), PlaneOptions(kubeconfig=f"/{name}"), ())


def test_the_only_plane_need_not_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Among several it must; a cluster of the user's own comes before a plane that is not `default`."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setattr(cluster, "_OWN", tmp_path / "own")
    assert (only_name(), Where().kubeconfig) == ("default", None)
    plane("one")
    assert only_name() == "one"
    assert Where().kubeconfig == Path("/one")
    (tmp_path / "own").touch()
    assert Where().kubeconfig is None
    plane("two")
    assert only_name() == "default"
    assert completed("status", "--name") == ["one", "two"]
    assert completed("explain", "--name", incomplete="t") == ["two"]

"""`muster train list`, `stop` and `resume` against an API server."""

from typing import Any

import pytest
from answering_server import Server

TRAIN_JOBS = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs"


@pytest.mark.parametrize(("command", "suspend", "words"), [
    ("stop", True, "stopped; muster train resume a starts it again"),
    ("resume", False, "resumed; it waits for its turn"),
])  # fmt: skip
def test_stop_and_resume(asked: Any, server: Server, *, command: str, suspend: bool, words: str) -> None:
    """All had their turn, also after one that is missing."""
    server.missing(f"PATCH {TRAIN_JOBS}/b", "b")
    server.answers[f"PATCH {TRAIN_JOBS}/a"] = (200, train_job("a"), [])
    result = asked("train", command, "b", "trainjob.trainer.kubeflow.org/a")
    assert (result.exit_code, result.stdout) == (1, f"trainjob.trainer.kubeflow.org/a {words}\n")
    assert "there is no trainjob.trainer.kubeflow.org/b in namespace default" in result.stderr
    assert server.bodies == [{"spec": {"suspend": suspend}}] * 2


def train_job(name: str, ended: str = "") -> Any:
    """A TrainJob."""
    conditions = [{"type": ended, "status": "True", "message": "m", "reason": "", "lastTransitionTime": ""}]
    return {
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"runtimeRef": {"name": "r"}, "suspend": name == "held"},
        "status": {"conditions": conditions if ended else []},
    }


def test_the_list_has_train_jobs_alone(asked: Any, server: Server) -> None:
    """Also those that have ended."""
    nothing: Any = (200, {"metadata": {"resourceVersion": "1"}, "items": []}, [])
    job = {"metadata": {"name": "other", "namespace": "default", "uid": "j"}, "spec": {}}
    jobs = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
    server.answers = {
        "GET /apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups": nothing,
        "GET /api/v1/namespaces/default/pods": nothing,
        "GET /apis/muster.dev/v1alpha1/namespaces/default/placements": nothing,
        f"GET {jobs}": (200, {"metadata": {"resourceVersion": "1"}, "items": [job]}, []),
        f"GET {TRAIN_JOBS}": (
            200,
            {"metadata": {"resourceVersion": "1"}, "items": [train_job("held"), train_job("over", "Complete")]},
            [],
        ),
    }
    result = asked("train", "list", "-o", "name")
    assert result.stdout.splitlines() == [f"trainjob.trainer.kubeflow.org/{name}" for name in ("held", "over")]
    table = asked("train", "list").stdout.splitlines()
    assert ["Suspended" in table[1], "Completed" in table[2]] == [True, True]

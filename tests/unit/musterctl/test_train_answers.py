"""`muster train list`, `stop` and `resume` against an API server."""

from typing import Any

import pytest
from answering_server import Server

TRAIN_JOBS = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs"
BATCH_JOBS = "/apis/batch/v1/namespaces/default/jobs"


@pytest.mark.parametrize(("command", "name", "suspend", "words"), [
    ("stop", "a", True, "is held: "),
    ("resume", "held", False, "is released: it waits in its queue"),
])  # fmt: skip
def test_stop_and_resume(asked: Any, server: Server, *, command: str, name: str, suspend: bool, words: str) -> None:
    """All were processed, even after a missing one; a workload of another kind with that name is named."""
    server.missing(f"GET {TRAIN_JOBS}/b", "b")
    server.answers[f"GET {BATCH_JOBS}/b"] = (200, {"metadata": {"name": "b", "uid": "u"}}, [])
    for method in ("GET", "PATCH"):
        server.answers[f"{method} {TRAIN_JOBS}/{name}"] = (200, train_job(name), [])
    result = asked("train", command, "b", f"trainjob.trainer.kubeflow.org/{name}")
    assert (result.exit_code, result.stdout.partition(words)[0]) == (1, f"trainjob.trainer.kubeflow.org/{name} ")
    assert "there is no trainjob.trainer.kubeflow.org/b in namespace default; there is job.batch/b" in result.stderr
    assert server.bodies == [{"metadata": {"uid": name}, "spec": {"suspend": suspend}}]


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

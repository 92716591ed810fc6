"""The end of a native sidecar says nothing about the program of its pod."""

import pytest
from builders import job, pod

from controller.job.rules.budget import fault_of
from controller.job.rules.events import exit_codes, pod_changed
from controller.trainjob.rules.children import Children
from controller.trainjob.rules.outcome import outcome
from muster.api.kubernetes.core import Pod
from muster.api.names import JOB_VERSION

ENDED = {"reason": "Error"}


def failed(main: int, sidecar: int = 143, restart_policy: str = "Always") -> Pod:
    """A pod whose program and whose first init container have ended with these codes."""
    init = [{"name": "logs", "image": "logs", **({"restartPolicy": restart_policy} if restart_policy else {})}]
    made = pod(
        "j-w-0", uid="1", task="w", init_containers=init, annotations={JOB_VERSION: "0"},
        status={
            "phase": "Failed",
            "initContainerStatuses": [{"name": "logs", "state": {"terminated": {"exitCode": sidecar, **ENDED}}}],
            "containerStatuses": [{"name": "main", "state": {"terminated": {"exitCode": main, **ENDED}}}],
        },
    )  # fmt: skip
    assert made.spec.init_containers[0].restart_policy == restart_policy
    return made


@pytest.mark.parametrize(("restart_policy", "codes"), [("Always", (1,)), ("", (143, 1))])
def test_the_exit_codes_of_a_pod_are_those_that_kubernetes_counts(restart_policy: str, codes: tuple[int, ...]) -> None:
    """A sidecar that is ended after the program has failed is none of them; an init container is."""
    assert exit_codes(failed(1, restart_policy=restart_policy)) == codes


def test_a_crash_stays_the_users_fault_beside_a_sidecar() -> None:
    """Else its restarts would not count: 143 is a signal, which may be the infrastructure's."""
    request = pod_changed(pod("j-w-0", uid="1", task="w", annotations={JOB_VERSION: "0"}), failed(1))
    assert request is not None
    assert fault_of(request, [], 0.0, frozenset({143})) == "user"


def test_a_train_job_names_the_program_that_failed() -> None:
    """And not its sidecar, which comes first in the pod's status."""
    found = outcome(Children(job=job("j", {"w": 1}, status={"state": {"phase": "Failed"}}), pods=[failed(3)]))
    assert found is not None
    assert found.message.endswith("pod j-w-0 failed: container main: exit code 3")

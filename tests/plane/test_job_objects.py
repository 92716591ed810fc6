"""What exists beside and because of a Job: pods, claims, names that are taken, and the end of it all."""

from collections.abc import Callable
from typing import Any

import pytest
from jobs import VOLUMES, Story, job, make_claim, policy, task

from muster.api import names
from muster.api.kubernetes.core import PODS, SERVICES
from muster.api.kubernetes.storage import CLAIMS
from muster.api.muster.gang import gated
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS

pytestmark = pytest.mark.plane
WaitFor = Callable[..., Any]


def test_a_name_that_is_taken_is_said(story: Story, namespace: str, wait_for: WaitFor) -> None:
    """A foreign pod in the way: event, reason and message say whose it is; the other pods exist; later all is well."""
    foreign = {
        "metadata": {"name": "j-w-1"},
        "spec": {"containers": [{"name": "c", "image": "none"}], "nodeSelector": {"no": "where"}},
    }
    story.client.create(PODS, foreign, namespace)
    story.create(job("j", namespace, task("w", 2, minAvailable=1), minAvailable=1))
    state = wait_for(lambda: story.job("j").status.state.reason == "FailedCreate" and story.job("j").status.state)
    assert "pod j-w-1 exists already and has no owner" in state.message
    wait_for(lambda: story.events("FailedCreate"))
    wait_for(lambda: "j-w-0" in story.pods)
    story.client.delete(PODS, "j-w-1", namespace, grace_period_s=0)
    wait_for(lambda: story.job("j").status.running == 2)


def test_a_plugin_that_cannot_work_stops_the_job(story: Story, namespace: str, wait_for: WaitFor) -> None:
    """The Job must not run without it, and says so."""
    story.create(job("j", namespace, task("w", 1), plugins={"ssh": ["--ssh-private-key=none"]}))
    state = wait_for(lambda: story.job("j").status.state.reason == "PluginError" and story.job("j").status.state)
    assert "ssh-private-key: the private key cannot be read" in state.message
    wait_for(lambda: story.events("PluginError"))
    assert not story.pods


def test_claims_are_made_for_the_job(story: Story, namespace: str, wait_for: WaitFor) -> None:
    """A volume without a claim's name gets one of its own, which is the Job's."""
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    made = story.create(job("j", namespace, task("w", 1), volumes=[{"mountPath": "/scratch", "volumeClaim": claim}]))
    found = wait_for(lambda: story.client.list(CLAIMS, namespace))[0]
    assert found.metadata.controller is not None
    assert found.metadata.controller.uid == made.metadata.uid
    key = f"volume-pvc-{found.metadata.name}"
    wait_for(lambda: story.job("j").status.controlled_resources.get(key) == found.metadata.name)


def test_a_job_waits_for_a_claim_that_does_not_exist(story: Story, namespace: str, wait_for: WaitFor) -> None:
    """It says which one, is not ended for it, and starts when the claim is there."""
    story.create(job("j", namespace, task("w", 1), volumes=[{"mountPath": "/data", "volumeClaimName": "data"}]))
    missing = f"claim {namespace}/data does not exist"
    wait_for(lambda: missing in story.job("j").status.state.message, what=missing)
    assert (story.phase("j"), story.job("j").status.state.reason) == ("Pending", "Unschedulable")
    wait_for(lambda: any(missing in message for message in story.events("PodGroupPending")))
    make_claim(story, "data")
    wait_for(lambda: story.phase("j") == "Running", 60)
    assert story.phases("j") == ["Pending", "Running"]
    story.client.delete(VOLUMES, namespace)


def test_a_deleted_job_takes_everything_along(story: Story, namespace: str, wait_for: WaitFor) -> None:
    """In whatever phase it is; pods, PodGroup and Service are the Job's."""
    nowhere = task("w", 2)
    nowhere["template"]["spec"]["nodeSelector"] = {"no": "where"}
    manifests = {
        "Pending": job("pending", namespace, nowhere),
        "Running": job("running", namespace, task("w", 2), plugins={"svc": []}),
        "Completed": job("completed", namespace, task("w", 2, run_s=0.1)),
        "Failed": job("failed", namespace, task("w", 2, run_s=0.1, exit_code=1)),
        "Terminated": job(
            "terminated",
            namespace,
            task("w", 2, run_s=0.1, exit_code=1),
            policies=[policy("TerminateJob", "PodFailed")],
        ),
    }
    made = {phase: story.create(manifest) for phase, manifest in manifests.items()}
    for phase, one in made.items():
        wait_for(lambda phase=phase, one=one: story.phase(one.metadata.name) == phase, what=phase)
        story.client.delete(JOBS, one.metadata.name, namespace)
    # On a plane that has just started: the garbage collector asks every half minute which kinds there are.
    wait_for(lambda: not story.client.list(PODS, namespace), 90)
    wait_for(lambda: not story.client.list(POD_GROUPS, namespace))
    wait_for(lambda: story.gone(SERVICES, "running"))


def test_a_finished_job_is_deleted_after_its_time(story: Story, namespace: str, wait_for: WaitFor) -> None:
    """TtlSecondsAfterFinished counts from the end."""
    story.create(job("j", namespace, task("w", 1, run_s=0.5), ttlSecondsAfterFinished=2))
    wait_for(lambda: "Completed" in story.phases("j"))
    wait_for(lambda: story.gone(JOBS, "j"))


def test_pods_are_members_of_their_gang(story: Story, namespace: str, wait_for: WaitFor) -> None:
    """A pod that runs carries its gang, its version, and the node and epoch of the placement that put it there."""
    made = story.create(job("j", namespace, task("w", 2)))
    wait_for(lambda: story.phase("j") == "Running")
    for pod in story.alive():
        annotations = pod.metadata.annotations
        assert annotations[names.GROUP_NAME] == f"j-{made.metadata.uid}"
        assert (annotations[names.JOB_VERSION], annotations[names.TEMPLATE_UID]) == ("0", "j-w")
        assert annotations[names.NODE] == pod.spec.node_name
        assert annotations[names.EPOCH] == "1"
        assert not gated(pod)

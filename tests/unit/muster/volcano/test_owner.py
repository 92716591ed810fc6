"""What belongs to a Volcano Job."""

import pytest

from muster.api import names
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.volcano.batch import Job
from muster.volcano.tasks import job_of, job_of_pod, owner_of, reference


def test_owner() -> None:
    """An object belongs to the Volcano Job that controls it, and to no other kind of Job."""
    job = Job(metadata=ObjectMeta(name="j", namespace="n", uid="u"))
    meta = ObjectMeta(name="j-w-0", namespace="n", owner_references=[owner_of(job)])
    assert job_of(meta) == ("n/j", "u")
    meta.owner_references[0].api_version = "batch/v1"
    assert job_of(meta) is None
    assert job_of(ObjectMeta()) is None


JOB = Job(metadata=ObjectMeta(name="j", namespace="n", uid="u"))


def pod_meta(name: str = "j-w-0", namespace: str = "n", task: str = "w", index: str = "0") -> ObjectMeta:
    """The metadata of a pod that the Job controls, as far as its owner reference says."""
    slot = {names.TASK_SPEC: task, names.TASK_INDEX: index}
    return ObjectMeta(name=name, namespace=namespace, annotations=slot, owner_references=[owner_of(JOB)])


def test_a_pod_of_the_job() -> None:
    """It is called as the Job calls the pod of its task and index; also one that the Job does not want any more."""
    assert job_of_pod(pod_meta()) == reference(JOB)
    assert job_of_pod(pod_meta("j-w-700", index="700")) == reference(JOB)


@pytest.mark.parametrize(
    "meta",
    [
        pod_meta("mine"),
        pod_meta("j-w-1"),
        pod_meta(task=""),
        pod_meta("j--", task="", index="0"),
        ObjectMeta(name="--"),
    ],
)
def test_a_pod_that_only_says_so(meta: ObjectMeta) -> None:
    """Anybody can write an owner reference; the name and what the pod says of its place must agree."""
    assert job_of_pod(meta) is None


def test_a_pod_of_another_namespace() -> None:
    """It refers to a Job of its own namespace, also where the UID is that of one elsewhere."""
    assert job_of_pod(pod_meta(namespace="other")) == ("other/j", "u")
    assert job_of_pod(pod_meta(namespace="other")) != reference(JOB)

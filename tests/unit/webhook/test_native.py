"""The native PodGroup of a pod, as which its gang is published."""

from dataclasses import replace
from typing import Any

import pytest
from builders import manifests
from webhook_world import JSON, DownWorld, OwnerWorld, QueueWorld, apply, lookups

from muster.api import names
from muster.runtime import registry
from webhook.mutate.pod import mutate

FRAMEWORK = registry.framework()
QUEUES = QueueWorld(q=("root", "Open"))
GROUP = {"podGroupName": "podgroup-u"}


def pod(annotations: JSON | None = None, labels: JSON | None = None, **spec: Any) -> JSON:
    """A pod of batch Job `train` with a queue, as its controller creates it."""
    labels = {"muster.dev/queue": "q", "batch.kubernetes.io/job-name": "train", **(labels or {})}
    metadata: JSON = {"generateName": "train-", "labels": labels, "annotations": annotations or {}}
    metadata["ownerReferences"] = [manifests.owner("train", uid="u")]
    pods = manifests.pod_spec(image="i", limits={"cpu": "1"}, restart_policy="Never", **spec)
    return {"metadata": metadata, "spec": pods}


def job(parallelism: int = 4, **annotations: str) -> OwnerWorld:
    """Batch Job `train`, perhaps with a minimum."""
    metadata = {"name": "train", "uid": "u", "annotations": annotations}
    template = {"spec": {"containers": [{"name": "main"}]}}
    spec = {"completionMode": "Indexed", "parallelism": parallelism, "completions": parallelism, "template": template}
    return OwnerWorld({"metadata": metadata, "spec": spec})


def named(obj: JSON, owners: Any = None, *, served: bool = True) -> Any:
    """The group that an admitted pod names, if gangs are published while the kind is served."""
    world = replace(lookups(QUEUES, owners or job()), native_groups=lambda: served)
    verdict = mutate(obj, "team", world, FRAMEWORK)
    assert not verdict.errors
    return apply(obj, verdict.patch)["spec"].get("schedulingGroup")


MINIMUM = {"muster.dev/min-member": "2"}


def test_a_pod_of_a_gang_names_the_group_as_which_it_is_published() -> None:
    """Whether pod or owner says the minimum, or a framework makes the pods a world; and nothing is said twice."""
    assert named(pod(MINIMUM)) == GROUP
    assert named(pod(), job(**MINIMUM)) == GROUP
    assert named(pod(labels={"muster.dev/framework": "torch"})) == GROUP
    assert named(pod(MINIMUM, schedulingGroup=GROUP)) == GROUP


@pytest.mark.parametrize(
    ("obj", "owners"),
    [
        (pod(), None),
        (pod({"muster.dev/min-member": "1"}), None),
        (pod(MINIMUM), job(parallelism=1)),
        (pod(MINIMUM, schedulerName="other"), None),
        (pod(MINIMUM, evictionResponders=[{"name": "x"}]), None),
        (pod({**MINIMUM, "scheduling.k8s.io/group-name": "mine"}), None),
    ],
    ids=["independent", "one", "one at a time", "another scheduler", "with responders", "in a group of the user's"],
)
def test_others_name_none(obj: JSON, owners: Any) -> None:
    """Pods that need no others to start, those of other schedulers, and those that the API server would refuse."""
    assert named(obj, owners) is None


def test_a_group_that_is_the_gang_of_the_pod_stays() -> None:
    """Admission has marked the templates of Jobs that ask for one."""
    mine = {"podGroupName": "mine"}
    assert named(pod({**MINIMUM, names.NATIVE_GROUP: "true"}, schedulingGroup=mine)) == mine


def test_the_group_that_every_job_has_makes_way() -> None:
    """For the one as which the gang is published, or for none: kube-scheduler would hold back pods for others."""
    made = {"podGroupName": "train-made-for-every-job"}
    assert named(pod(MINIMUM, schedulingGroup=made)) == GROUP
    assert named(pod(schedulingGroup=made)) is None
    assert named(pod(MINIMUM, schedulingGroup=made), served=False) is None
    verdict = mutate(pod(MINIMUM, schedulingGroup=made), "team", lookups(QUEUES, job()), FRAMEWORK)
    assert verdict.patch[-1] == {"op": "add", "path": "/spec/schedulingGroup", "value": None}
    assert named(pod(MINIMUM, schedulingGroup=made, schedulerName="other")) == made


def test_nothing_is_said_where_nothing_is_published() -> None:
    """The API server does not serve the kind, or the settings say no."""
    assert named(pod(MINIMUM), served=False) is None
    assert "schedulingGroup" not in str(mutate(pod(MINIMUM), "team", lookups(QUEUES, job()), FRAMEWORK).patch)


def test_an_owner_that_cannot_be_read_is_no_obstacle() -> None:
    """Such a pod goes by its own annotations."""
    assert named(pod(MINIMUM), DownWorld()) == GROUP
    assert named(pod(), DownWorld()) is None

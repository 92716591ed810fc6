"""Pods of another life of a gang's owner."""

from typing import Any

import pytest
from extender_world import World

from muster.api import names
from muster.api.kubeflow.jobset import JOB_SETS
from muster.api.kubernetes.core import Pod, PodSpec, PodStatus
from muster.api.kubernetes.meta import OwnerReference
from muster.api.volcano.scheduling import PodGroup, PodGroupSpec, PodGroupStatus


def owner(kind: str, name: str, uid: str) -> list[OwnerReference]:
    """The reference to a controller."""
    api_version = JOB_SETS.api_version if kind == JOB_SETS.kind else "x/v1"
    return [OwnerReference(api_version=api_version, kind=kind, name=name, uid=uid, controller=True)]


def group_of(world: World, kind: str, uid: str) -> PodGroup:
    """The PodGroup of the owner `train` with this UID."""
    meta = world.meta("g", owner_references=owner(kind, "train", uid))
    spec, status = PodGroupSpec(min_member=2, queue="default"), PodGroupStatus(phase="Running")
    group = PodGroup(metadata=meta, spec=spec, status=status)
    world.state.on_pod_group(None, group)
    return group


def join(world: World, name: str, *, node: str = "", **more: Any) -> None:
    """A pod of the gang."""
    meta = world.meta(name, uid=name, annotations={names.GROUP_NAME: "g"}, **more)
    phase = "Running" if node else "Pending"
    pod = Pod(metadata=meta, spec=PodSpec(scheduler_name="muster", node_name=node), status=PodStatus(phase=phase))
    world.state.on_pod(None, pod)


def by_uid(uid: str) -> dict[str, Any]:
    """A pod that the owner makes itself."""
    return {"owner_references": owner("MPIJob", "train", uid)}


def by_label(uid: str) -> dict[str, Any]:
    """A pod that a Job of the owner makes; JobSet writes its UID into a label."""
    labels = {"jobset.sigs.k8s.io/jobset-uid": uid}
    return {"owner_references": owner("Job", "train-node-0", f"job-{uid}"), "labels": labels}


@pytest.mark.parametrize(("kind", "made"), [("MPIJob", by_uid), ("JobSet", by_label)])
def test_pods_of_a_successor_wait_for_their_own_gang(kind: str, made: Any) -> None:
    """They are no members of the gang of an owner that is gone, nor are the old ones members of theirs."""
    world = World()
    old = group_of(world, kind, "first")
    key = old.metadata.key
    join(world, "a", node="node-1", **made("first"))
    join(world, "b", node="node-2", **made("first"))
    join(world, "c", **made("second"))
    join(world, "d", **made("second"))
    assert [pod.name for pod in world.view(key).pods] == ["a", "b"]
    assert world.view(key).started
    world.state.on_pod_group(old, None)
    group_of(world, kind, "second")
    assert [pod.name for pod in world.view(key).pods] == ["c", "d"]
    assert not world.state.started(key)


def test_pods_that_do_not_say_whose_they_are_are_members() -> None:
    """Such as those without a controller, and those of a controller of another name."""
    world = World()
    key = group_of(world, "JobSet", "first").metadata.key
    join(world, "a")
    join(world, "b", owner_references=owner("Job", "other", "second"))
    assert [pod.name for pod in world.view(key).pods] == ["a", "b"]

"""What the controller keeps of pods."""

from builders import pod as a_pod

from controller import caches
from controller.caches import kept
from controller.gangs.rendezvous import mounted_hostfile, mounted_keys
from muster.api.kubernetes.core import Pod
from muster.resources.pods import pod_usage

OWNER = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": "j-uid", "controller": True}
CONTAINER = {"name": "main", "env": [{"name": "A", "value": "1"}], "command": ["train"],
             "resources": {"requests": {"cpu": "2"}, "limits": {"nvidia.com/gpu": "1"}}}  # fmt: skip


def pod(name: str, owner: dict[str, object]) -> Pod:
    """A pod on a node, with a sidecar."""
    sidecar = CONTAINER | {"name": "sidecar", "restartPolicy": "Always"}
    status = {"conditions": [{"type": "Ready", "status": "True"}]}
    slot = {"task": "w", "index": int(name), "uid": name, "owner": owner}
    return a_pod(
        f"j-w-{name}", node="n", scheduler="volcano", status=status, containers=[CONTAINER], init_containers=[sidecar],
        **slot,
    )  # fmt: skip


def test_a_member_of_a_job_keeps_what_the_rules_read() -> None:
    """Where it is, what it uses and how it is; equal parts of two pods are the same objects."""
    whole = pod("0", OWNER)
    one, other = kept(whole), kept(pod("1", OWNER))
    assert not one.spec.containers[0].env
    assert not one.spec.containers[0].command
    assert (one.metadata, one.status, one.spec.node_name) == (whole.metadata, whole.status, "n")
    assert pod_usage(one.spec) == pod_usage(whole.spec)
    assert one.spec.containers is other.spec.containers
    assert one.metadata.owner_references is other.metadata.owner_references


def test_any_other_pod_keeps_no_more() -> None:
    """Of its volumes only the names of what the controller makes for MPI."""
    foreign = pod("2", {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j-uid", "controller": True})
    foreign.spec.volumes = [
        {"name": "mpi-ssh-auth", "secret": {"secretName": "keys", "items": [{"key": "a", "path": "b"}]}},
        {"name": "mpi-hostfile", "configMap": {"name": "hosts"}},
        {"name": "data", "configMap": {"name": "other", "items": []}},
    ]
    one = kept(foreign)
    assert one.spec.volumes == [
        {"name": "mpi-ssh-auth", "secret": {"secretName": "keys"}},
        {"name": "mpi-hostfile", "configMap": {"name": "hosts"}},
    ]
    assert (mounted_keys(one), mounted_hostfile(one)) == ("keys", "hosts")
    assert not one.spec.containers[0].env


def test_what_pods_share_has_a_bound() -> None:
    """A part of unusual size is not remembered after its pod."""
    kept(pod("1", OWNER))  # its other parts are remembered, whichever test comes first
    one = pod("2", OWNER)
    one.status.conditions[0].message = "x" * 100_000
    before = caches._decoded.cache_info().currsize
    assert kept(one).status.conditions == one.status.conditions
    assert caches._decoded.cache_info().currsize == before

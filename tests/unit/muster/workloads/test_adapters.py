"""What owners say about their pods, and why some cannot form a group."""

import copy
from typing import Any

import frameworks_world as w
import pytest

from muster.api.kubernetes.endpoints import Joined, NumberedNames

JSON = dict[str, Any]
TORCH = w.template("torch", {}, {})
PODS = "metadata.ownerReferences"


def owned_by(kind: str, version: str = "apps/v1") -> w.Group:
    """A pod of an owner that has no adapter."""
    group = w.indexed_job(TORCH)
    group.pod["metadata"]["ownerReferences"][0] |= {"kind": kind, "apiVersion": version}
    return group


def refused(group: w.Group) -> list[tuple[str, str]]:
    """Path and message of each error; a refused pod stays as it is."""
    result = w.shaped(group)
    assert result.pod == group.pod
    return [(error.path, error.message) for error in result.errors]


def gang(minimum: int) -> JSON:
    """A template with a minimum."""
    return w.template("torch", {"muster.dev/min-member": str(minimum)}, {})


def without(group: w.Group, *path: str) -> w.Group:
    """The group without a member of its pod."""
    place: Any = group.pod
    for part in path[:-1]:
        place = place[part]
    del place[path[-1]]
    return group


BAD: dict[str, tuple[w.Group, str, str]] = {
    "ReplicaSet": (owned_by("ReplicaSet"), PODS, "pods of a ReplicaSet (or Deployment) have no index"),
    "DaemonSet": (owned_by("DaemonSet"), PODS, "pods of a DaemonSet have no index"),
    "somebody else's": (owned_by("Thing", "x.io/v1"), PODS, "does not know how pods of a Thing find their rank"),
    "gone": (w.Group(w.indexed_job(TORCH).pod), PODS, "the Job that owns this pod is gone"),
    "StatefulSet without a Service": (w.stateful_set(TORCH, serviceName=""), PODS, "spec.serviceName: Required value"),
    "StatefulSet one by one": (w.stateful_set(TORCH, podManagementPolicy="OrderedReady"), PODS,
        'spec.podManagementPolicy: Invalid value: "OrderedReady": must be Parallel: the gang waits for 4 pods'),
    "Volcano Job without names": (w.volcano_job(TORCH, plugins={}), PODS,
        "spec.plugins: Invalid value: []: must include svc"),
    "Volcano task that is gone": (w.volcano_job(TORCH, tasks={"other": 4}), PODS, "spec.tasks: Invalid value"),
    "Volcano task with a host name": (w.volcano_job(w.template("torch", {}, {}, hostname="same")), PODS,
        'spec.tasks[0].template.spec.hostname: Invalid value: "same": must be left out'),
    "LeaderWorkerSet after us": (without(w.leader_worker_set(TORCH), "metadata", "labels",
        "leaderworkerset.sigs.k8s.io/worker-index"), PODS,
        "the configuration of the LeaderWorkerSet webhook must be first by name"),
    "LeaderWorkerSet of unknown size": (without(w.leader_worker_set(TORCH), "metadata", "annotations",
        "leaderworkerset.sigs.k8s.io/size"), PODS, "must be set by the LeaderWorkerSet controller"),
    "rank that is none": (w.bare_pod(TORCH, rank="x", size="4", leader="l"), "metadata.annotations[muster.dev/rank]",
        "must be a number of at least 0"),
    "size that is none": (w.bare_pod(TORCH, rank="0", size="0", leader="l"), "metadata.annotations[muster.dev/size]",
        "must be a number of at least 1"),
    "rank alone": (w.bare_pod(TORCH, rank="0"), "metadata.annotations[muster.dev/size]",
        "must be set as well as muster.dev/rank"),
    "rank beyond the size": (w.bare_pod(TORCH, rank="4", size="4", leader="l"), "metadata.annotations[muster.dev/rank]",
        "must be less than muster.dev/size (4), because ranks start at 0"),
    "no leader": (w.bare_pod(TORCH, rank="1", size="4"), "metadata.annotations[muster.dev/leader]",
        "must be the host name of rank 0"),
}  # fmt: skip
BAD["Volcano task that is gone"][0].pod["metadata"]["annotations"]["volcano.sh/task-spec"] = "worker"


@pytest.mark.parametrize(("group", "path", "words"), BAD.values(), ids=BAD.keys())
def test_each_refusal(group: w.Group, path: str, words: str) -> None:
    """Where, and why, with the field of the owner that must change."""
    [(found, message)] = refused(group)
    assert found == path
    assert words in message


def test_a_pod_alone_is_its_own_world() -> None:
    """No owner, no annotations: one pod, rank 0, and no name is needed."""
    pod = copy.deepcopy(TORCH)
    pod["metadata"]["name"] = "alone"
    result = w.shaped(w.Group(pod))
    assert not result.errors
    env = w.env_of(result.pod["spec"]["containers"][0])
    assert (env["PET_NNODES"], env["PET_NODE_RANK"], env["PET_MASTER_ADDR"]) == ("1", "0", "127.0.0.1")
    assert "subdomain" not in result.pod["spec"]


def test_nodes_that_call_back_search_the_domain_of_their_launcher() -> None:
    """Behind the pod's own domains; one that is among them is not added again."""
    domain = "train.team.svc.cluster.local"
    for given, searched in (([], [domain]), (["mine"], ["mine", domain]), ([domain], [domain])):
        dns = {"dnsConfig": {"searches": given}} if given else {}
        pods = w.template("mpi", {"muster.dev/mpi-implementation": "Intel", **w.SECRET}, {}, **dns)
        result = w.shaped(w.indexed_job(pods))
        assert (result.errors, result.pod["spec"]["dnsConfig"]["searches"]) == ([], searched)


def test_leader_knows_its_own_name() -> None:
    """Rank 0 with host name and subdomain needs no annotation for the leader."""
    group = w.bare_pod(TORCH, rank="0", size="2")
    group.pod["spec"] |= {"hostname": "first", "subdomain": "peers"}
    result = w.shaped(group)
    assert not result.errors
    assert result.env["PET_MASTER_ADDR"] == "first.peers"


def test_stateful_set_with_a_minimum_in_parallel() -> None:
    """A gang is possible when all pods are created at once."""
    assert not w.shaped(w.stateful_set(gang(4), podManagementPolicy="Parallel")).errors
    assert not w.shaped(w.stateful_set(gang(1), podManagementPolicy="OrderedReady")).errors


def test_jobset_without_the_labels_of_its_controller() -> None:
    """A Job of a JobSet must tell which part of the group it is."""
    group = w.jobset(TORCH)
    assert group.owner is not None
    del group.owner["metadata"]["labels"][f"{w.JOBSET}/job-index"]
    [(path, message)] = refused(group)
    assert (path, "job-index" in message) == (PODS, True)


def test_second_review_changes_nothing() -> None:
    """For every kind of owner, shaping what was shaped gives no operation."""
    for make in (w.indexed_job, w.jobset, w.stateful_set, w.leader_worker_set, w.volcano_job, w.bare_pod):
        group = make(TORCH)
        once = w.shaped(group)
        again = w.shaped(w.Group(once.pod, group.owner))
        assert again.pod == once.pod
        assert not again.errors


def test_injected_containers_get_the_same() -> None:
    """Further containers by annotation, init containers among them; an unknown one is refused by name."""
    pods = w.template("torch", {"muster.dev/inject-into": "side, check"}, {})
    pods["spec"]["containers"].append({"name": "side"})
    pods["spec"]["initContainers"] = [{"name": "check"}]
    spec = w.shaped(w.indexed_job(pods)).pod["spec"]
    assert w.env_of(spec["containers"][1]) == w.env_of(spec["initContainers"][0]) == w.env_of(spec["containers"][0])
    pods["metadata"]["annotations"]["muster.dev/inject-into"] = "gone"
    [(path, message)] = refused(w.indexed_job(pods))
    assert path == "metadata.annotations[muster.dev/inject-into]"
    assert "which has node, side, check" in message


def test_endpoints_are_sequences() -> None:
    """Length, order, negative ranks and slices, across the seams of joined runs."""
    joined = Joined((("first.s",), NumberedNames("w-", ".s", 3, start=1)))
    assert list(joined) == ["first.s", "w-1.s", "w-2.s", "w-3.s"]
    assert (len(joined), joined[-1], joined[1:3]) == (4, "w-3.s", ["w-1.s", "w-2.s"])
    with pytest.raises(IndexError):
        joined[4]


@pytest.mark.parametrize("place", ["containers", "initContainers"])
def test_quantities_that_are_none(place: str) -> None:
    """A wrong quantity is refused where it stands, in whichever container."""
    pods = w.template("torch", {}, {})
    pods["spec"].setdefault(place, []).append({"name": "bad", "resources": {"limits": {"nvidia.com/gpu": ""}}})
    [(path, message)] = refused(w.indexed_job(pods))
    assert path == f"spec.{place}[{len(pods['spec'][place]) - 1}].resources"
    assert "nvidia.com/gpu: '' is not a quantity" in message

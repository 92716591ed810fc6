"""Rows of gangs: whose they are, their state, size and reason, from the objects that a user may read."""

from typing import Any

import msgspec

from extender.planner.reasons.pods import TOO_FEW
from extender.planner.reasons.room import NO_ROOM, NearestMiss, Shortage
from muster.api.kubeflow.trainer import TrainJob
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.muster.gang import workload_note
from muster.api.muster.placement import Placement
from muster.api.volcano.batch import Job
from muster.api.volcano.scheduling import PodGroup
from musterctl.gangs.rows import Objects, Row, difference, rows

JSON = dict[str, Any]


def owner(kind: str, name: str, api_version: str = "batch/v1") -> JSON:
    """Metadata with an owner."""
    return {
        "ownerReferences": [{"apiVersion": api_version, "kind": kind, "name": name, "uid": name, "controller": True}]
    }


def made_by(kind: str, name: str, api_version: str) -> JSON:
    """More metadata of a PodGroup: what has made its owner, as the controller notes it."""
    return {"annotations": workload_note(msgspec.convert(owner(kind, name, api_version), ObjectMeta))}


def group(
    name: str = "podgroup-1", phase: str = "Inqueue", reason: str = "", message: str = "", **more: Any
) -> PodGroup:
    """A PodGroup that waits if there is a reason."""
    condition = {"type": "Unschedulable", "status": "True", "reason": reason, "message": message}
    meta = {"name": name, "namespace": "ns", "uid": name, **more.pop("metadata", owner("Job", "longrun"))}
    spec = {"minMember": 2, "queue": "research", **more.pop("spec", {})}
    status = {"phase": phase, "conditions": [condition] if reason else [], **more}
    return msgspec.convert({"metadata": meta, "spec": spec, "status": status}, PodGroup)


def pod(name: str, phase: str = "Pending", node: str = "", gang: str = "podgroup-1", gpus: int = 2, **meta: Any) -> Pod:
    """A pod of a gang."""
    container = {"resources": {"limits": {"nvidia.com/gpu": gpus}}}
    annotations = {"scheduling.k8s.io/group-name": gang}
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": "ns", "annotations": annotations, **meta},
            "spec": {"schedulerName": "muster", "nodeName": node, "priority": 7, "containers": [container]},
            "status": {"phase": phase},
        },
        Pod,
    )


def only(**objects: Any) -> Row:
    """The one row of these."""
    [row] = rows(Objects(**objects))
    return row


def test_a_gang_that_waits_for_room() -> None:
    """It is called as its owner is, and the reason names the room in a few words."""
    miss = NearestMiss(2, "nvidia.com/gpu", 2000, whole_nodes=False, levels=())
    message = Shortage("pods", "together", 2, 0, {"nvidia.com/gpu": 2000}, 8, 0, (), miss).message
    row = only(groups=[group(reason=NO_ROOM, message=message)], pods=[pod("a"), pod("b"), pod("c")])
    assert (row.title, row.reference, row.queue, row.state) == (
        "Job longrun",
        "job.batch/longrun",
        "research",
        "Waiting",
    )
    assert (row.running, row.minimum, row.wanted, row.priority) == (0, 2, 3, 7)
    assert row.reason == "no room for 2 pods of 2 nvidia.com/gpu"
    assert row.message == message


def test_a_gang_that_never_fits() -> None:
    """It does not look as if waiting helped."""
    miss = NearestMiss(2, "nvidia.com/gpu", 2000, whole_nodes=False, levels=())
    message = Shortage("pods", "ever", 2, 1, {"nvidia.com/gpu": 2000}, 1, 0, (), miss).message
    row = only(groups=[group(reason=NO_ROOM, message=message)], pods=[pod("a"), pod("b")])
    assert "even an empty cluster" in row.reason


def test_other_reasons_are_the_planners() -> None:
    """As far as ten words go."""
    row = only(groups=[group(reason=TOO_FEW, message="1 of the 2 pods that start together exist")], pods=[pod("a")])
    assert row.reason == "1 of the 2 pods that start together exist"


def test_a_gang_that_runs() -> None:
    """Its nodes are those of its pods; those that go, or have ended, do not count."""
    pods = [pod("a", "Running", "n0"), pod("b", "Running", "n1"), pod("c", "Succeeded", "n2")]
    pods.append(pod("d", "Running", "n3", deletionTimestamp="2026-11-21T05:38:34Z"))
    row = only(groups=[group(phase="Running")], pods=pods)
    assert (row.state, row.running, row.nodes, row.reason) == ("Running", 2, ["n0", "n1"], "")


def test_a_gang_whose_containers_do_not_start() -> None:
    """The list says so, without kubelet's words; they are in the sentence."""
    waits = {"name": "main", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}
    ill = msgspec.structs.replace(
        pod("a", node="n0"),
        status=msgspec.convert({"phase": "Pending", "containerStatuses": [waits]}, type(pod("a").status)),
    )
    row = only(groups=[group(phase="Running")], pods=[ill])
    assert (row.state, row.reason) == ("Starting", "container main: ImagePullBackOff")
    assert row.message == "pod a: container main: ImagePullBackOff: no such image"


def test_a_gang_with_a_reservation() -> None:
    """It has an expected start, and no nodes yet."""
    placement = msgspec.convert(
        {
            "metadata": {"name": "podgroup-1", "namespace": "ns"},
            "spec": {"podSets": [{"name": "pods", "runs": [{"node": "n0", "count": 2}]}]},
            "status": {"phase": "Reserved", "expectedAt": "2026-11-21T05:38:34Z", "message": "reserved: 1 node, n0, x"},
        },
        Placement,
    )
    row = only(groups=[group(reason=NO_ROOM, message="m")], placements=[placement], pods=[pod("a")])
    assert (row.state, row.expected_start, row.nodes) == ("Reserved", "2026-11-21T05:38:34Z", [])
    assert row.reason == "room is reserved on n0"


def test_a_gang_without_rights_to_pods() -> None:
    """Counts are the PodGroup's, and nodes the placement's."""
    placed = {"podSets": [{"name": "pods", "runs": [{"node": "n0", "count": 1}, {"node": "n1", "count": 1}]}]}
    placement = msgspec.convert({"metadata": {"name": "podgroup-1", "namespace": "ns"}, "spec": placed}, Placement)
    row = only(groups=[group(phase="Running", running=2)], pods=None, placements=[placement])
    assert (row.state, row.running, row.nodes, row.priority) == ("Running", 2, ["n0", "n1"], None)
    late = only(groups=[group(phase="Running")], pods=None)  # counts are written when they have come to rest
    assert (late.state, late.running, late.reason) == ("Running", 0, "")


def test_owners() -> None:
    """A Job of a TrainJob is that TrainJob's, a ReplicaSet is its Deployment's, and what nobody owns is itself."""
    job = msgspec.convert(
        {
            "metadata": {
                "name": "fit",
                "namespace": "ns",
                "uid": "j",
                **owner("TrainJob", "fit", "trainer.kubeflow.org/v1"),
            },
            "spec": {"tasks": [{"name": "node", "replicas": 5}], "minAvailable": 4},
        },
        Job,
    )
    of_job = {
        "ownerReferences": [
            {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "fit", "uid": "j", "controller": True}
        ]
    }
    row = only(
        groups=[group("fit-j", metadata=of_job | made_by("TrainJob", "fit", "trainer.kubeflow.org/v1"))], jobs=[job]
    )
    assert (row.title, row.reference, row.wanted) == ("TrainJob fit", "trainjob.trainer.kubeflow.org/fit", 5)
    web = owner("ReplicaSet", "web-abc", "apps/v1") | made_by("Deployment", "web", "apps/v1")
    assert only(groups=[group(metadata=web)], pods=[pod("w")]).title == "Deployment web"
    assert only(groups=[group(metadata=owner("Pod", "lone", "v1"))]).reference == "pod/lone"
    assert only(groups=[group("mine", metadata={})]).title == "PodGroup mine"


def test_jobs_without_a_gang() -> None:
    """One that is suspended or over has none, and is in the list all the same."""

    def job(phase: str, **metadata: Any) -> Job:
        state = {"phase": phase, "message": "why"}
        meta = {"name": "train", "namespace": "ns", "uid": "j", **metadata}
        return msgspec.convert({"metadata": meta, "spec": {"queue": "q"}, "status": {"state": state}}, Job)

    states = {phase: only(jobs=[job(phase)]).state for phase in ("Aborted", "Failed", "Completed", "Pending", "")}
    assert states == {
        "Aborted": "Suspended",
        "Failed": "Failed",
        "Completed": "Completed",
        "Pending": "Waiting",
        "": "Waiting",
    }
    suspended = {
        "metadata": {"name": "fit", "namespace": "ns", "uid": "fit"},
        "spec": {"runtimeRef": {"name": "r"}, "suspend": True},
    }
    train_job = msgspec.convert(suspended, TrainJob)
    assert only(train_jobs=[train_job]).state == "Suspended"
    initializer = dict.fromkeys(("ready", "succeeded", "failed", "suspended"), 0) | {
        "name": "dataset-initializer",
        "active": 1,
    }
    fetching = msgspec.convert(
        {
            "metadata": {"name": "fit", "namespace": "ns", "uid": "fit"},
            "spec": {"runtimeRef": {"name": "r"}},
            "status": {"jobsStatus": [initializer]},
        },
        TrainJob,
    )
    assert only(train_jobs=[fetching]).reason == "it waits for its dataset-initializer"
    mine = job("Aborted", **owner("TrainJob", "fit", "trainer.kubeflow.org/v1"))
    row = only(train_jobs=[train_job], jobs=[mine])
    assert (row.title, row.state, row.queue) == ("TrainJob fit", "Suspended", "q")
    assert row.reason == "`muster train resume fit` starts it again"
    over = {"type": "Failed", "status": "True", "lastTransitionTime": "", "reason": "x", "message": "pod fit-0 failed"}
    failed = msgspec.structs.replace(train_job, status=msgspec.convert({"conditions": [over]}, type(train_job.status)))
    row = only(train_jobs=[failed], jobs=[job("Terminated", **owner("TrainJob", "fit", "trainer.kubeflow.org/v1"))])
    assert (row.state, row.reason) == ("Failed", "pod fit-0 failed")
    assert only(jobs=[job("Aborted")]).reason == "`muster job resume train` starts it again"


def test_changes() -> None:
    """What has changed is shown as it is now, what is not there any more as gone, and nothing twice."""
    before = rows(Objects(groups=[group("a", metadata=owner("Job", "a")), group("b", metadata=owner("Job", "b"))]))
    now = rows(Objects(groups=[group("a", phase="Running", metadata=owner("Job", "a"))]))
    assert [(row.name, row.state) for _, row in difference(before, now)] == [("a", "Starting"), ("b", "Gone")]
    assert difference(now, now) == []

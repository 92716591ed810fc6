"""Rows of gangs: whose they are, their state, size and reason, from the objects that a user may read."""

from typing import Any

import msgspec
import pytest
from builders import job as a_job
from builders import manifests, placement, pod_group, train_job
from builders import pod as a_pod
from msgspec import structs

from extender.planner.reasons.cause import NODE_SELECTOR
from extender.planner.reasons.pods import TOO_FEW
from extender.planner.reasons.shortages import Cause, NearestMiss, Shortage, Wanted
from extender.planner.reasons.topology import Closest
from gangs.plainjobs import HELD_KINDS, is_held_by_user, refusals
from gangs.row import GangRow
from gangs.rows import RowSources, difference, gang_name, rows
from gangs.states import needs_room
from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.kubernetes.core import Event, IndexedJob, Namespace, Pod
from muster.api.kubernetes.meta import ObjectMeta, OwnerReference, parse_time
from muster.api.muster.gang import workload_note
from muster.api.names import CREATED_BY, HELD_REPLICAS, MANAGED, MOVED_TO, QUEUE
from muster.api.volcano.batch import JOBS, Job
from muster.api.volcano.flow import FlowState, JobFlow
from muster.api.volcano.scheduling import EVICTED, NO_ROOM, PodGroup
from muster.workloads.kind import WorkloadKind

JSON = dict[str, Any]
EVICTION = {"type": "Unschedulable", "status": "False", "reason": EVICTED, "message": "a node is gone"}


def owner(kind: str, name: str, api_version: str = "batch/v1") -> JSON:
    """Metadata with an owner."""
    return {"owner": manifests.owner(name, kind, api_version, name)}


def made_by(kind: str, name: str, api_version: str) -> JSON:
    """More metadata of a PodGroup: what has made its owner, as the controller notes it."""
    made = msgspec.convert(owner(kind, name, api_version)["owner"], OwnerReference)
    return {"annotations": workload_note(ObjectMeta(owner_references=[made]), ())}


def group(
    name: str = "podgroup-1", phase: str = "Inqueue", reason: str = "", message: str = "",
    lacks: Shortage | None = None, **more: Any,
) -> PodGroup:  # fmt: skip
    """A PodGroup that waits if there is a reason."""
    condition: JSON = {"type": "Unschedulable", "status": "True", "reason": reason, "message": message}
    if lacks:
        condition |= {"message": lacks.message, "why": msgspec.to_builtins(lacks.data)}
    meta, spec = more.pop("metadata", owner("Job", "longrun")), more.pop("spec", {})
    status = {"conditions": [condition] if reason else [], **more}
    return pod_group(name, 2, queue="research", phase=phase, uid=name, status=status, **meta, **spec)


def pod(name: str, phase: str = "Pending", node: str = "", gang: str = "podgroup-1", gpus: int = 2, **meta: Any) -> Pod:
    """A pod of a gang."""
    return a_pod(name, node=node, phase=phase, gang=gang, limits={"nvidia.com/gpu": gpus}, priority=7, **meta)


def only(**objects: Any) -> GangRow:
    """The one row of these."""
    [row] = rows(RowSources(**objects))
    return row


def short_of_room(kind: Wanted = "together", **more: Any) -> Shortage:
    """What two pods of two GPUs lack."""
    miss = NearestMiss(2, "nvidia.com/gpu", 2000, whole_nodes=False, levels=())
    return Shortage("worker", kind, 2, 0, {"nvidia.com/gpu": 2000}, 8, 0, (), miss, **more)


def test_a_gang_that_waits_for_room() -> None:
    """It is called as its owner is, and the reason names the room in a few words."""
    lacks = short_of_room()
    row = only(groups=[group(reason=NO_ROOM, lacks=lacks)], pods=[pod("a"), pod("b"), pod("c")])
    assert (row.title, row.reference, row.queue) == ("Job longrun", "job.batch/longrun", "research")
    assert (row.state, row.running, row.minimum, row.wanted) == ("Waiting", 0, 2, 3)
    assert (row.reason, row.message) == ("no room for 2 pods of 2 nvidia.com/gpu", lacks.message)


def test_a_gang_for_which_no_node_is_suitable() -> None:
    """The reason names the selector, as free nodes would not help."""
    selector = Cause(str(NODE_SELECTOR), NODE_SELECTOR, 8, 8, ("n0",))
    waits = group(reason=NO_ROOM, lacks=structs.replace(short_of_room(), causes=(selector,)))
    assert only(groups=[waits], pods=[pod("a")]).reason == "no suitable node: 8 do not match the node selector"


def test_a_gang_that_never_fits() -> None:
    """It does not look as if waiting helped."""
    waits = group(reason=NO_ROOM, lacks=short_of_room("ever"))
    assert "even an empty cluster" in only(groups=[waits], pods=[pod("a"), pod("b")]).reason
    assert (needs_room(waits), needs_room(group(reason=NO_ROOM, lacks=short_of_room()))) == (False, True)


@pytest.mark.parametrize(("waits", "reason"), [
    (group(reason=NO_ROOM, lacks=short_of_room(closest=Closest("worker", "rack", "rack", "rack-1", 1, 2, 3))),
        "2 pods must be in one domain of level rack"),
    (group(reason=NO_ROOM, message="worker: even an empty cluster has one domain"),
        "worker: even an empty cluster has one domain"),
    (group(reason=TOO_FEW, message="1 of the 2 pods that start together exist"),
        "1 of the 2 pods that start together exist"),
], ids=["no domain", "words without data", "another reason"])  # fmt: skip
def test_other_reasons(waits: PodGroup, reason: str) -> None:
    """A level says more than the room of all nodes; words of an older version, or another scheduler, are no data."""
    assert only(groups=[waits], pods=[pod("a"), pod("b")]).reason == reason
    assert needs_room(waits) == (waits.status.conditions[0].reason == NO_ROOM)


@pytest.mark.parametrize(("group_class", "pod_classes", "expected"), [
    ("", {"high": 7}, (0, "0")),
    ("", {"low": -5}, (-5, "-5")),
    ("high", {"high": 7}, (7, "high")),
    ("low", {"low": 1, "high": 7}, (1, "low")),
    ("high", {"": 0}, (0, "0")),
    ("high", {}, (None, "high")),
])  # fmt: skip
def test_the_priority_that_counts(
    group_class: str, pod_classes: dict[str, int], expected: tuple[int | None, str]
) -> None:
    """The priority of the PodGroup, which its pods limit; a class of the pods alone does not count."""
    pods = [pod(f"p{value}") for value in pod_classes.values()]
    for each, (name, value) in zip(pods, pod_classes.items(), strict=True):
        each.spec.priority, each.spec.priority_class_name = value, name
    row = only(groups=[group(spec={"priority_class_name": group_class})], pods=pods)
    assert (row.priority, row.priority_text) == expected


def test_a_job_flow_whose_next_job_is_refused() -> None:
    """It has a row with the reason, until it has ended."""
    why = "step train: there is no JobTemplate train in namespace ns; create it"
    flows = [JobFlow(metadata=ObjectMeta(name=phase.lower(), namespace="ns")) for phase in ("Running", "Failed")]
    for flow in flows:
        flow.status.state = FlowState(phase="Failed" if flow.metadata.name == "failed" else "Running", message=why)
    row = only(job_flows=[*flows, JobFlow(metadata=ObjectMeta(name="well", namespace="ns"))])
    assert (row.title, row.reference) == ("JobFlow running", "jobflow.flow.volcano.sh/running")
    assert (row.state, row.message) == ("Waiting", why)


def test_a_gang_that_runs() -> None:
    """Its nodes are those of its pods; those that go, or have ended, do not count."""
    pods = [pod("a", "Running", "n0"), pod("b", "Running", "n1"), pod("c", "Succeeded", "n2")]
    pods.append(pod("d", "Running", "n3", deleted="2026-11-21T05:38:34Z"))
    row = only(groups=[group(phase="Running")], pods=pods)
    assert (row.state, row.running, row.nodes, row.reason) == ("Running", 2, ["n0", "n1"], "")


def test_a_gang_whose_containers_do_not_start() -> None:
    """The list says so, without kubelet's words; they are in the sentence."""
    waits = {"name": "main", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}
    ill = a_pod("a", node="n0", phase="Pending", gang="podgroup-1", status={"containerStatuses": [waits]})
    row = only(groups=[group(phase="Running")], pods=[ill])
    assert (row.state, row.reason) == ("Starting", "container main: ImagePullBackOff")
    assert row.message == "pod a: container main: ImagePullBackOff: no such image"
    assert only(groups=[group(phase="Running")], pods=[ill, ill]).message == f"{row.message} (and 1 more)"
    assert only(groups=[group(phase="Running")], pods=[ill]).priority == 0  # as of a pod without a class


def test_nodes_of_a_gang_that_starts() -> None:
    """Those of its placement, too, as long as not all of its pods run."""
    placed = placement("podgroup-1", {"pods": ["n0", "n1"]}, gang_uid="podgroup-1")
    starts = only(groups=[group(phase="Running")], placements=[placed], pods=[pod("a", node="n2"), pod("b")])
    assert (starts.state, starts.nodes) == ("Starting", ["n0", "n1", "n2"])
    assert starts.message == "the gang has its nodes; 1 of 2 pods bound"
    pods = [pod("a", "Running", "n2"), pod("b", "Running", "n3")]
    runs = only(groups=[group(phase="Running")], placements=[placed], pods=pods)
    assert (runs.state, runs.nodes) == ("Running", ["n2", "n3"])


@pytest.mark.parametrize(("status", "message"), [
    ({"failed": 2}, "2 pods failed"),
    ({"failed": 1, "conditions": [EVICTION]}, "a node is gone"),
    ({"failed": 1, "conditions": [EVICTION], "ending": "its Job failed"}, "its Job failed"),
])  # fmt: skip
def test_why_a_gang_has_failed(status: JSON, message: str) -> None:
    """As its owner says, else why it was evicted, else how many pods failed."""
    row = only(groups=[group(phase="Completed", **status)], pods=[])
    assert (row.state, row.message, row.nodes) == ("Failed", message, [])


def crashed(name: str, gang: str = "podgroup-1", code: int = 1) -> Pod:
    """A pod whose container has failed."""
    ended = {"name": "main", "state": {"terminated": {"exitCode": code, "finishedAt": "2026-11-21T05:38:34Z"}}}
    return a_pod(name, node="n0", phase="Failed", gang=gang, status={"containerStatuses": [ended]})


def test_the_first_failed_member_is_the_reason() -> None:
    """Of every kind of workload; its owner's message follows, unless it names the pod, too."""
    pods = [crashed("b", code=137), pod("a", "Succeeded", "n1")]
    row = only(groups=[group(phase="Completed", failed=1, ending="backoffLimit 0")], pods=pods)
    assert (row.state, row.reason) == ("Failed", "pod b: container main: exit code 137 (SIGKILL)")
    assert row.message == "pod b on n0 failed: container main: exit code 137 (SIGKILL); backoffLimit 0"
    state = {"phase": "Failed", "reason": "PodsFailed", "message": "0 succeeded; pod t-0 on n0 failed: exit code 1"}
    row = only(jobs=[a_job("t", uid="j", status={"state": state})], pods=[crashed("t-0", "t-j")])
    assert (row.state, row.reason, row.message) == ("Failed", "pod t-0: container main: exit code 1", state["message"])


def test_a_failed_train_job_is_failed_by_its_gang_and_by_its_job() -> None:
    """Also one of a JobSet, whose pods may be gone, and one whose Job was terminated as it failed."""
    over = {"type": "Failed", "status": "True", "lastTransitionTime": "", "reason": "x"}
    status = {"conditions": [over | {"message": "jobset failed due to one or more job failures: pod f-0 failed"}]}
    failed, of = train_job("f", "r", uid="f", status=status), owner("TrainJob", "f", TRAIN_JOBS.api_version)
    row = only(groups=[group(phase="Completed", succeeded=1, metadata=of)], train_jobs=[failed], pods=[])
    assert (row.state, row.reason) == ("Failed", "pod f-0 failed")
    terminated = a_job("f", uid="j", status={"state": {"phase": "Terminated"}}, **of)
    assert only(jobs=[terminated], train_jobs=None).state == "Failed"
    assert only(jobs=[a_job("f", uid="j", status={"state": {"phase": "Terminated"}})]).state == "Terminated"


def test_a_job_that_was_terminated_after_a_failure() -> None:
    """It has the first failure: of its pods, or else of its message, which begins with the words of any end."""
    first = "pod t-0 on n0 failed: container main: exit code 1"
    state = {"phase": "Terminated", "reason": "PodsStopped", "message": f"all pods have finished or are gone; {first}"}
    terminated = a_job("t", uid="j", status={"state": state})
    row = only(jobs=[terminated], pods=[crashed("t-0", "t-j")])
    assert (row.state, row.reason, row.message) == ("Terminated", "pod t-0: container main: exit code 1", first)
    row = only(jobs=[terminated], pods=[])
    assert (row.reason, row.message) == (first, first)
    state["message"] = "all pods have finished or are gone"
    assert only(jobs=[a_job("t", uid="j", status={"state": state})]).message == state["message"]


def test_a_gang_with_a_reservation() -> None:
    """It has an expected start, and no nodes yet."""
    status = {"expectedAt": "2026-11-21T05:38:34Z", "message": "reserved: 1 node, n0, x"}
    reserved = placement("podgroup-1", {"pods": ["n0", "n0"]}, phase="Reserved", status=status, gang_uid="podgroup-1")
    row = only(groups=[group(reason=NO_ROOM, message="m")], placements=[reserved], pods=[pod("a")])
    assert (row.state, row.expected_start, row.nodes) == ("Reserved", "2026-11-21T05:38:34Z", [])
    assert row.reason == "room is reserved on n0"


def test_a_gang_without_rights_to_pods() -> None:
    """Counts are the PodGroup's, and nodes the placement's."""
    placed = placement("podgroup-1", {"pods": ["n0", "n1"]}, gang_uid="podgroup-1")
    row = only(groups=[group(phase="Running", running=2)], pods=None, placements=[placed])
    assert (row.state, row.running, row.nodes, row.priority) == ("Running", 2, ["n0", "n1"], None)
    late = only(groups=[group(phase="Running")], pods=None)  # counts are written when they have come to rest
    assert (late.state, late.running, late.reason) == ("Running", 0, "")


def test_owners() -> None:
    """A Job of a TrainJob is that TrainJob's, a ReplicaSet is its Deployment's, and what nobody owns is itself."""
    above = owner("TrainJob", "fit", "trainer.kubeflow.org/v1alpha1")
    job = a_job("fit", {"node": 5}, uid="j", min_available=4, **above)
    of_job = {"owner": manifests.job_owner("fit", "j")}
    row = only(
        groups=[group("fit-j", metadata=of_job | made_by("TrainJob", "fit", "trainer.kubeflow.org/v1alpha1"))],
        jobs=[job],
    )
    assert (row.title, row.reference, row.wanted) == ("TrainJob fit", "trainjob.trainer.kubeflow.org/fit", 5)
    web = owner("ReplicaSet", "web-abc", "apps/v1") | made_by("Deployment", "web", "apps/v1")
    assert only(groups=[group(metadata=web)], pods=[pod("w")]).title == "Deployment web"
    assert only(groups=[group(metadata=owner("Pod", "lone", "v1"))]).reference == "pod/lone"
    assert only(groups=[group("mine", metadata={})]).title == "PodGroup mine"


def test_jobs_without_a_gang() -> None:
    """One that is suspended or over has none, and is in the list all the same."""

    def job(phase: str, **metadata: Any) -> Job:
        return a_job("train", uid="j", queue="q", status={"state": {"phase": phase, "message": "why"}}, **metadata)

    states = {phase: only(jobs=[job(phase)]).state for phase in ("Aborted", "Failed", "Completed", "Pending", "")}
    assert [*states.values()] == ["Suspended", "Failed", "Completed", "Waiting", "Waiting"]
    suspended = train_job("fit", "r", uid="fit", suspend=True)
    waits = only(train_jobs=[suspended])
    assert (waits.state, waits.size, waits.priority_text, waits.nodes) == ("Suspended", "0/0/0", "-", [])
    counts = dict.fromkeys(("ready", "succeeded", "failed", "suspended"), 0)
    initializer = {"name": "dataset-initializer", "active": 1, **counts}
    fetching = train_job("fit", "r", uid="fit", status={"jobsStatus": [initializer]})
    assert only(train_jobs=[fetching]).reason == "it waits for its dataset-initializer"
    mine = job("Aborted", **owner("TrainJob", "fit", "trainer.kubeflow.org/v1alpha1"))
    row = only(train_jobs=[suspended], jobs=[mine])
    assert (row.title, row.state, row.queue) == ("TrainJob fit", "Suspended", "q")
    assert row.reason == "`muster release fit -n ns` starts it"
    over = {"type": "Failed", "status": "True", "lastTransitionTime": "", "reason": "x", "message": "pod fit-0 failed"}
    failed = train_job("fit", "r", uid="fit", suspend=True, status={"conditions": [over]})
    row = only(
        train_jobs=[failed], jobs=[job("Terminated", **owner("TrainJob", "fit", "trainer.kubeflow.org/v1alpha1"))]
    )
    assert (row.state, row.reason) == ("Failed", "pod fit-0 failed")
    assert only(jobs=[job("Aborted")]).reason == "`muster release train -n ns` starts it"


def test_a_gang_whose_pods_cannot_be_created() -> None:
    """The words of the API server, as the Job has them, or the TrainJob of a JobSet."""
    few = {"reason": TOO_FEW, "message": "1 of the 2 pods that start together exist"}
    state = {"phase": "Pending", "reason": "FailedCreate", "message": "pod train-1 cannot be created: exceeded quota"}
    refused = a_job("train", uid="train", status={"state": state})
    row = only(groups=[group(**few, metadata=owner("Job", "train", JOBS.api_version))], jobs=[refused])
    assert (row.state, row.message, row.reason) == ("Waiting", state["message"], state["message"])
    told = {
        "type": "Blocked",
        "status": "True",
        "lastTransitionTime": "",
        "reason": "x",
        "message": "Job fit-node-0: no",
    }
    blocked = train_job("fit", "r", uid="fit", status={"conditions": [told]})
    of = owner("TrainJob", "fit", TRAIN_JOBS.api_version)
    assert only(groups=[group(**few, metadata=of)], train_jobs=[blocked]).message == told["message"]
    assert only(groups=[group(metadata=of, phase="Running")], train_jobs=[blocked]).message != told["message"]


def plain(name: str = "p", status: JSON | None = None, labels: JSON | None = None, **spec: Any) -> IndexedJob:
    """A Job of Kubernetes in queue `q`, of four pods."""
    metadata = {"name": name, "namespace": "ns", "uid": name, "labels": {QUEUE: "q"} if labels is None else labels}
    metadata["annotations"] = spec.pop("annotations", {})
    return msgspec.convert(
        {"metadata": metadata, "spec": {"parallelism": 4, **spec}, "status": status or {}}, IndexedJob
    )


ENDED = {"type": "Failed", "status": "True", "message": "deadline"}
NO_LABEL = "it has no label muster.dev/queue, so Muster does not place…"
REFUSED = {"p": (1e10, "exceeded quota: q")}


@pytest.mark.parametrize(("job", "more", "state", "reason"), [
    (plain(suspend=True), {}, "Suspended", "`muster release p -n ns` starts it"),
    (plain(), {"refusals": REFUSED}, "Waiting", "its pods cannot be created: exceeded quota: q"),
    (plain(), {}, "Waiting", "its pods do not exist yet"),
    (plain(status={"active": 4}), {}, "Waiting", "its gang does not exist yet"),
    (plain(parallelism=0), {}, "Waiting", "the Job's parallelism is 0"),
    (plain(status={"conditions": [ENDED]}), {}, "Failed", "deadline"),
    (plain(labels={}, annotations={QUEUE: "q"}), {}, "Waiting", NO_LABEL),
    (plain(labels={}, annotations={QUEUE: "q"}, status={"ready": 4}), {}, "Running", NO_LABEL),
], ids=["suspended", "refused", "new", "without PodGroup", "no pods", "failed", "misplaced", "runs"])  # fmt: skip
def test_a_job_of_kubernetes_without_a_gang(job: IndexedJob, more: JSON, state: str, reason: str) -> None:
    """It has a row, with its size and the reason: it has no PodGroup that could say why."""
    row = only(plain_jobs=[job], **more)
    assert (row.reference, row.state, row.reason) == ("job.batch/p", state, reason)
    assert row.size == f"0/0/{1 if not job.spec.parallelism else 4}"


def held(kind: WorkloadKind, labels: JSON | None = None, spec: JSON | None = None, **metadata: Any) -> JSON:
    """A workload that wants no pods, in queue `q`."""
    metadata = {
        "name": "h",
        "namespace": "ns",
        "uid": "h",
        "labels": {QUEUE: "q"} if labels is None else labels,
    } | metadata
    wants_none = {"suspend": True} if kind.verbs and kind.verbs.stop else {"replicas": 0}
    return {"metadata": metadata, "spec": {**wants_none, **(spec or {})}}


NOTED = {HELD_REPLICAS: "3"}
GROUPS_OF_TWO = {"leaderWorkerTemplate": {"size": 2}}


@pytest.mark.parametrize(("kind", "spec", "reference", "wanted"), [
    ("StatefulSet", {}, "statefulset.apps/h", 3),
    ("Deployment", {"template": {"metadata": {"labels": None}}}, "deployment.apps/h", 3),
    ("LeaderWorkerSet", GROUPS_OF_TWO, "leaderworkerset.leaderworkerset.x-k8s.io/h", 6),
    ("JobSet", {}, "jobset.jobset.x-k8s.io/h", 0),
])  # fmt: skip
def test_a_held_workload_has_a_row(kind: str, spec: JSON, reference: str, wanted: int) -> None:
    """Of each kind, with the command that releases it, and the queue where it was moved to while it was held."""
    [one] = [each for each in HELD_KINDS if each.resource.kind == kind]
    noted = NOTED if wanted else {}
    workload = held(one, spec=spec, annotations=noted)
    assert is_held_by_user(one, workload)
    row = only(held=[(one, workload)])
    assert (row.reference, row.state, row.queue, row.wanted) == (reference, "Suspended", "q", wanted)
    assert row.reason == "`muster release h -n ns` starts it"
    assert only(held=[(one, held(one, spec=spec, annotations={**noted, MOVED_TO: "other"}))]).queue == "other"
    made = owner(one.resource.kind, "h", one.resource.api_version)
    assert only(held=[(one, workload)], groups=[group(metadata=made)]).gang == "podgroup-1"
    part_of = [{**owner("TrainJob", "fit")["owner"], "controller": True}]
    assert not is_held_by_user(one, held(one, annotations=noted, ownerReferences=part_of))
    assert is_held_by_user(one, held(one)) == (not wanted)  # scaled to 0 by hand: it serves nobody for now
    assert rows(RowSources(held=[(one, held(one, {}, annotations=noted))])) == []


def test_whose_a_gang_is() -> None:
    """As admission has recorded it, on the PodGroup or on a workload without one."""
    by = {CREATED_BY: "eve"}
    assert only(groups=[pod_group("g", uid="g", annotations=by)]).user == "eve"
    assert only(plain_jobs=[plain(annotations=by)]).user == "eve"
    assert only(jobs=[a_job("j", uid="j", annotations=by)]).user == "eve"
    assert only(plain_jobs=[plain()]).user == ""


def test_jobs_of_kubernetes_that_have_no_row_of_their_own() -> None:
    """Those that do not concern Muster, have a gang, or are a part of a TrainJob; a namespace may name the queue."""
    opted_out = plain(labels={QUEUE: "q", MANAGED: "false"})
    assert rows(RowSources(plain_jobs=[plain(labels={}), opted_out])) == []
    space = msgspec.convert({"metadata": {"name": "ns", "labels": {QUEUE: "mine"}}}, Namespace)
    assert only(plain_jobs=[plain(labels={})], namespaces=[space]).queue == "mine"
    assert only(groups=[group(metadata=owner("Job", "p"))], plain_jobs=[plain()]).gang == "podgroup-1"
    member = a_pod("w", gang="podgroup-1", **owner("Job", "p"))
    assert only(groups=[group(metadata=owner("JobSet", "s", "jobset.x-k8s.io/v1alpha2"))], pods=[member],
        plain_jobs=[plain()]).kind == "JobSet"  # fmt: skip
    part = plain()
    made = manifests.owner("fit", "JobSet", "jobset.x-k8s.io/v1alpha2", "set")
    part.metadata.owner_references = [msgspec.convert(made, OwnerReference)]
    assert only(train_jobs=[train_job("fit", "r", uid="fit", suspend=True)], plain_jobs=[part]).kind == "TrainJob"


def test_the_words_of_the_controller_of_pods_that_are_missing() -> None:
    """They are the reason, and not how many exist; a pod that came later ends them, as does an eviction."""
    few = {"reason": TOO_FEW, "message": "1 of the 2 pods that start together exist", "metadata": owner("Job", "p")}
    at = "2026-11-21T05:38:34Z"
    early, late = ({"p": (parse_time(at) + seconds, "exceeded quota")} for seconds in (-10.0, 10.0))
    pods = [pod("a", created=at)]
    assert only(groups=[group(**few)], pods=pods, refusals=late).reason == "its pods cannot be created: exceeded quota"
    assert only(groups=[group(**few)], pods=pods, refusals=early).reason == few["message"]
    assert only(groups=[group(**few)], pods=[*pods, pod("b", created=at)], refusals=late).reason == few["message"]
    failed = pod("c", phase="Failed", created="2026-11-21T05:30:00Z")
    assert only(groups=[group(**few)], pods=[failed, *pods], refusals=early).reason == few["message"]
    said = 'Error creating: pods "p-x" is forbidden: exceeded quota: q'
    event = {"involvedObject": {"uid": "p"}, "message": said, "lastTimestamp": at, "reason": "FailedCreate"}
    assert refusals([msgspec.convert(event, Event)]) == {"p": (parse_time(at), "exceeded quota: q")}


def test_a_namespace_that_is_being_deleted() -> None:
    """It is the reason of all that waits there, of whatever kind."""
    leaves = msgspec.convert({"metadata": {"name": "ns", "deletionTimestamp": "2026-11-21T05:38:34Z"}}, Namespace)
    objects = RowSources(
        groups=[group(reason=NO_ROOM, message="m"), group("podgroup-2", phase="Running", metadata=owner("Job", "r"))],
        plain_jobs=[plain(suspend=True)], train_jobs=[train_job("fit", "r", uid="fit")], namespaces=[leaves],
    )  # fmt: skip
    reasons = {row.name: row.reason for row in rows(objects)}
    why = "namespace ns is being deleted"
    assert (reasons["longrun"], reasons["p"], reasons["fit"]) == (why, why, why)
    assert reasons["r"] != why


def test_a_gang_whose_pods_are_all_being_deleted() -> None:
    """The reason says so, as room may be missing only since they are there; with a new pod it is the usual one."""
    leaving = [pod(name, "Running", "node-1", deleted="2027-01-15T08:00:00Z") for name in "ab"]
    waits = group(reason=NO_ROOM, lacks=short_of_room())
    row = only(groups=[waits], pods=leaving)
    assert (row.state, row.reason) == ("Waiting", "all of its 2 pods are being deleted")
    assert "being deleted" not in only(groups=[waits], pods=[*leaving, pod("c")]).reason


def test_a_gang_that_has_lost_a_member() -> None:
    """The row names the pod that waits in its place, or else the pod that failed; failed pods are no size."""
    lost = [pod("a", "Running", "node-1"), pod("b", "Failed", "node-2")]
    running = group(phase="Running", reason=NO_ROOM, lacks=short_of_room("lost"))
    row = only(groups=[running], pods=[*lost, pod("c")])
    assert (row.state, row.size, row.reason) == ("Degraded", "1/2/2", "no room for 2 pods of 2 nvidia.com/gpu")
    assert row.message.startswith("pod c waits: ")
    row = only(groups=[group(phase="Running")], pods=lost)
    assert (row.state, row.size, row.reason) == ("Running", "1/2/2", "pod b: failed")
    assert row.message == "pod b on node-2 failed; there is no other pod in its place yet"
    assert only(groups=[group(phase="Running")], pods=[*lost, pod("c", "Running", "node-3")]).message == ""


def test_pods_count_before_the_phase() -> None:
    """A gang whose pods run does not wait, although its PodGroup does not show it yet."""
    waits = group(reason=NO_ROOM, lacks=short_of_room())
    row = only(groups=[waits], pods=[pod(name, "Running", "node-1") for name in "ab"])
    assert (row.state, row.size, row.reason, row.needs_room) == ("Running", "2/2/2", "", False)


def test_order_and_pods_of_others() -> None:
    """By namespace, queue and age; a pod is of its gang, or is a gang by itself, or another scheduler's."""
    groups = [
        pod_group(name, queue=queue, namespace=space, created=f"2026-11-21T05:38:{second}Z", uid=name + space)
        for name, queue, space, second in [
            ("d", "b", "x", 10),
            ("c", "a", "x", 30),
            ("b", "a", "x", 40),
            ("a", "a", "y", 10),
        ]
    ]
    assert [row.name for row in rows(RowSources(groups=groups, pods=[]))] == ["c", "b", "d", "a"]
    theirs = a_pod("t", gang="podgroup-1", scheduler_name="default-scheduler")
    assert [gang_name(each) for each in (pod("a"), a_pod("own", uid="u"), theirs)] == ["podgroup-1", "podgroup-u", None]
    assert only(groups=[group()], pods=[theirs]).wanted == 2


def test_changes() -> None:
    """What has changed is shown as it is now, what is not there any more as gone, and nothing twice."""
    before = rows(RowSources(groups=[group("a", metadata=owner("Job", "a")), group("b", metadata=owner("Job", "b"))]))
    now = rows(RowSources(groups=[group("a", phase="Running", metadata=owner("Job", "a"))]))
    assert [(row.name, row.state) for _, row in difference(before, now)] == [("a", "Starting"), ("b", "Gone")]
    assert difference(now, now) == []


def test_two_gangs_of_a_job_set_are_told_apart() -> None:
    """By their replicated jobs, or what it has made; the only gang of a workload needs no more than its name."""
    of_set = owner("JobSet", "s", "jobset.x-k8s.io/v1alpha2")
    made = made_by("Deployment", "d", "apps/v1")
    groups = [
        group("podgroup-jobset-s.driver", metadata=of_set),
        group("podgroup-jobset-s.worker", metadata=of_set),
        group("podgroup-1", metadata={**owner("ReplicaSet", "d-1", "apps/v1"), **made}),
        group("podgroup-2", metadata={**owner("ReplicaSet", "d-2", "apps/v1"), **made}),
        group("podgroup-jobset-alone.worker", metadata=owner("JobSet", "alone", "jobset.x-k8s.io/v1alpha2")),
    ]
    for made in ("plain-a-0", "plain-a-1"):
        of = made_by("JobSet", "plain", "jobset.x-k8s.io/v1alpha2")
        groups.append(group(f"podgroup-{made}", metadata={**owner("Job", made), **of}))
    of = made_by("LeaderWorkerSet", "lws", "leaderworkerset.x-k8s.io/v1")
    groups.append(group("podgroup-lws", metadata={**owner("StatefulSet", "lws", "apps/v1"), **of}))
    titles = {row.title for row in rows(RowSources(groups=groups))}
    assert titles == {
        "JobSet s (driver)", "JobSet s (worker)", "Deployment d (1)", "Deployment d (2)", "JobSet alone",
        "JobSet plain (a-0)", "JobSet plain (a-1)", "LeaderWorkerSet lws",
    }  # fmt: skip


def test_a_gang_ends_with_its_job() -> None:
    """Whose end its PodGroup has a little later."""
    failed = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}
    meta, status = {"name": "longrun", "namespace": "ns", "uid": "longrun"}, {"conditions": [failed]}
    job = msgspec.convert({"metadata": meta, "spec": {"backoffLimit": 0}, "status": status}, IndexedJob)
    row = only(groups=[group(phase="Running")], pods=[], plain_jobs=[job])
    assert (row.state, row.message) == ("Failed", "more of its pods failed than its backoffLimit 0 allows")
    job = msgspec.structs.replace(job, status={})
    assert only(groups=[group(phase="Running")], pods=[], plain_jobs=[job]).state == "Starting"

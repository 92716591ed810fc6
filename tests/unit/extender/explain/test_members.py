"""Members that have their node and do not run there: what kubelet says, and nodes that do not answer."""

from typing import Any

import msgspec
import pytest
from builders import manifests
from explain_world import ExplainWorld, report_of
from extender_world import GPU8
from msgspec.structs import replace

from extender.explain.clusterdump import load, save
from extender.explain.text import lines_of
from muster.api.kubernetes.core import NodeCondition, PodStatus, Taint
from muster.api.kubernetes.meta import OwnerReference

DIED = "2027-01-15T08:00:10Z"
DELETED = "2027-01-15T08:05:00Z"
UNREACHABLE = "node.kubernetes.io/unreachable"


def waiting(reason: str, message: str = "", *, kind: str = "containerStatuses", phase: str = "Pending") -> PodStatus:
    """The status of a pod whose container waits."""
    state = {"waiting": {"reason": reason, "message": message}}
    return msgspec.convert({"phase": phase, kind: [{"name": "main", "state": state}]}, PodStatus)


def gang(world: ExplainWorld, members: int = 4) -> str:
    """Gang `a`, all of whose members run, each on a node of its own; it can do without one."""
    world.nodes(members)
    key = world.gang("a", {"worker": (members, GPU8)}, phase="Running", min_member=max(1, members - 1))
    world.members(key, members, GPU8, node="node-{}", phase="Running")
    return key


def says(world: ExplainWorld, key: str, rank: int, status: PodStatus) -> None:
    """Kubelet says this of a member."""
    pod = world.pod(key, "worker", rank, GPU8, node=f"node-{rank}", phase=status.phase)
    world.notify(pod, msgspec.structs.replace(pod, status=status))


def dies(world: ExplainWorld, name: str, **node: Any) -> None:
    """The node's kubelet is heard of no more."""
    found = world.node(name, taints=[Taint(key=UNREACHABLE, effect="NoExecute")], **node)
    found.status.conditions.append(NodeCondition(type="Ready", status="Unknown", last_transition_time=DIED))


def deleted(world: ExplainWorld, key: str, rank: int, **meta: Any) -> None:
    """Somebody deletes a member that runs; 30 s are its own."""
    over = {"deletion_timestamp": "2027-01-15T08:05:30Z", "deletion_grace_period_seconds": 30, **meta}
    world.pod(key, "worker", rank, GPU8, node=f"node-{rank}", phase="Running", **over)


@pytest.mark.parametrize("kind", ["containerStatuses", "initContainerStatuses"])
@pytest.mark.parametrize("reason", ["ErrImageNeverPull", "ImagePullBackOff", "CreateContainerConfigError"])
def test_a_gang_whose_containers_do_not_start_does_not_run(reason: str, kind: str) -> None:
    """The first pod is told in the sentence, each in the details."""
    world = ExplainWorld()
    key = gang(world, 2)
    for rank in range(2):
        says(world, key, rank, waiting(reason, "no such thing", kind=kind))
    report = world.gang_report("a")
    told = f"on node-0: container main: {reason}: no such thing"
    summary = f"no member runs: 2 members have their node, 0 of them run; pod a-worker-0 {told} (and 1 more)"
    assert (report.cause, report.summary) == ("members-hindered", summary)
    assert report.details == [f"a-worker-{rank} on node-{rank}: {told.partition(': ')[2]}" for rank in range(2)]
    pod = world.pod_report("a-worker-0")
    assert (pod.cause, pod.summary) == ("hindered", f"the pod is on node-0 and does not run: {told.partition(': ')[2]}")


def test_one_container_that_crashes_does_not_hide_the_others() -> None:
    """Three of four run."""
    world = ExplainWorld()
    says(world, gang(world), 3, waiting("CrashLoopBackOff", "back-off 20s", phase="Running"))
    report = world.gang_report("a")
    assert report.cause == "members-hindered"
    assert report.summary.startswith("it runs: 4 members have their node")
    assert report.summary.endswith("pod a-worker-3 on node-3: container main: CrashLoopBackOff: back-off 20s")


@pytest.mark.parametrize("reason", ["SysctlForbidden", "OutOfcpu", "NodeAffinity"])
def test_a_refused_pod_has_failed_and_is_not_missing(reason: str) -> None:
    """Its owner has created it; kubelet said no."""
    world = ExplainWorld()
    says(world, gang(world), 3, PodStatus(phase="Failed", reason=reason, message="no"))
    report = world.gang_report("a")
    [workers] = report.pod_sets
    assert (workers.bound, workers.failed, workers.missing) == (3, 1, 0)
    assert f"a-worker-3 on node-3: {reason}: no" in report.details
    pod = world.pod_report("a-worker-3")
    assert (pod.cause, pod.summary) == ("failed", f"the pod has ended: Failed on node-3: {reason}: no")


def test_a_pod_that_a_dead_node_keeps_is_not_missing() -> None:
    """On which node, since when, and what frees it; nobody is told to tolerate a dead node."""
    world = ExplainWorld()
    key = gang(world)
    dies(world, "node-3")
    deleted(world, key, 3)
    report = world.gang_report("a")
    [workers] = report.pod_sets
    assert (workers.bound, workers.leaving, workers.missing) == (3, 1, 0)
    assert report.cause == "members-lost"
    assert report.summary.endswith("; 1 of its pods is on nodes that do not respond: node-3")
    told = f"has been terminating since {DELETED} from node-3, which has not been Ready since {DIED}"
    assert report.details == [f"a-worker-3 {told}, so no kubelet confirms the pod's end"]
    [frees] = report.relief
    assert frees.sentence == (
        "node-3 responds again; or, if it is certainly off, "
        "kubectl taint node node-3 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute, "
        "or kubectl delete pod a-worker-3 -n ns --grace-period=0 --force"
    )
    pod = world.pod_report("a-worker-3")
    assert pod.cause == "terminating"
    assert pod.summary.startswith(f"the pod {told}")
    assert pod.gang.relief == report.relief
    assert any(line.text == "worker: 3 bound, 1 being deleted" for line in lines_of(report, world.now))


def test_a_gang_that_a_dead_node_leaves_in_part() -> None:
    """It goes back as a whole if this lasts; the node is named all the same."""
    world = ExplainWorld().nodes(4)
    key = world.runs("a", 4, GPU8)
    dies(world, "node-3")
    deleted(world, key, 3)
    report = world.gang_report("a")
    assert report.cause == "half-placed"
    assert report.summary.endswith("; 1 of its pods is on nodes that do not respond: node-3")
    assert report.relief[0].kind == "frees"


def test_a_pod_on_a_dead_node_that_nobody_deletes_yet() -> None:
    """Kubelet's last word was Running; that is no news."""
    world = ExplainWorld()
    gang(world)
    dies(world, "node-3")
    assert world.gang_report("a").cause == "members-lost"
    pod = world.pod_report("a-worker-3")
    assert pod.cause == "lost"
    assert pod.summary == f"the pod is on node-3, which has not been Ready since {DIED}, so its state is unknown"


def test_a_pod_whose_node_is_gone() -> None:
    """Force is all that helps."""
    world = ExplainWorld()
    key = gang(world)
    world.state.on_node(world.state.nodes.nodes[world.state.nodes.index["node-3"]], None)
    deleted(world, key, 3)
    [frees] = world.gang_report("a").relief
    assert frees.sentence.startswith("pods left on node-3, which is gone, are force-deleted: kubectl delete pod")


def test_a_pod_that_goes_slowly_on_a_good_node() -> None:
    """Since when, and which finalizers keep it; the gang runs."""
    world = ExplainWorld()
    deleted(world, gang(world), 3, finalizers=["example.com/report"])
    report = world.gang_report("a")
    kept = "it is kept by the finalizers example.com/report"
    assert report.details == [f"a-worker-3 has been terminating since {DELETED} from node-3; {kept}"]
    assert (report.cause, report.relief) == ("running", [])


@pytest.mark.parametrize("taint", [UNREACHABLE, "node.kubernetes.io/not-ready", "node.kubernetes.io/out-of-service"])
def test_nobody_is_told_to_tolerate_a_dead_node(taint: str) -> None:
    """The node has to recover; whether that is enough is tried."""
    world = ExplainWorld().nodes(1)
    world.node("node-1", taints=[Taint(key=taint, effect="NoSchedule")])
    world.gang("a", {"worker": (2, GPU8)})
    report = world.gang_report("a")
    assert not [relief for relief in report.relief if relief.kind == "tolerate"]
    assert report.relief[0].sentence == f"node-1 recovers and the taint {taint} disappears"


def test_a_suspect_node_has_to_recover_also_where_only_a_condition_says_so() -> None:
    """No toleration would help: nothing new goes to a suspect node."""
    world = ExplainWorld().nodes(1)
    world.node("node-1", conditions={"KernelDeadlock": "True"})
    world.gang("a", {"worker": (2, GPU8)})
    report = world.gang_report("a")
    assert "1 suspect (condition KernelDeadlock=True)" in report.summary
    assert report.relief[0].sentence == "node-1 recovers and the condition KernelDeadlock=True disappears"


def test_of_many_members_the_first_are_told() -> None:
    """The report stays readable."""
    world = ExplainWorld()
    key = gang(world, 12)
    for rank in range(12):
        says(world, key, rank, waiting("ErrImagePull"))
    details = world.gang_report("a").details
    assert (len(details), details[-1]) == (9, "and 4 more of this kind")


def test_a_snapshot_file_keeps_reasons_and_no_images() -> None:
    """Kubelet's messages about containers name them."""
    world = ExplainWorld()
    says(world, gang(world, 1), 0, waiting("ErrImagePull", "registry.example/secret:1 not found"))
    details = report_of(load(save(world.dump())), "a").details
    assert details == ["a-worker-0 on node-0: container main: ErrImagePull"]


def test_a_job_whose_pods_were_refused_waits_without_a_gang() -> None:
    """It says until when; the controller is not to blame."""
    world = ExplainWorld().nodes(1)
    world.runs("a", 1, GPU8)
    world.state.on_pod_group(world.state.groups["ns/a"], None)
    [job] = world.state.jobs.values()
    job.status.state.phase, job.status.state.reason, job.status.state.message = "Pending", "BackOff", "refused"
    assert world.explain("a", "job").summary == "it has no gang: the Job is Pending (BackOff: refused)"


def test_a_held_job_names_the_command_that_releases_it() -> None:
    """Its gang is gone, and nothing is wrong."""
    world = ExplainWorld().nodes(1)
    world.gang("a", {"worker": (1, GPU8)})
    world.state.on_pod_group(world.state.groups["ns/a"], None)
    [job] = world.state.jobs.values()
    job.status.state.phase, job.status.state.reason = "Aborted", "PodsStopped"
    assert world.explain("a", "job").summary == "it is suspended (held): `muster release a -n ns` starts it"


def test_a_gang_whose_pods_are_refused() -> None:
    """The Job has the words of the API server; without a gang, the controller is not to blame."""
    world = ExplainWorld().nodes(1)
    world.gang("a", {"worker": (2, GPU8)})
    [job] = world.state.jobs.values()
    refusal = "pod a-worker-1 cannot be created: exceeded quota"
    job.status.state.phase, job.status.state.reason, job.status.state.message = "Pending", "FailedCreate", refusal
    assert world.explain("a", "job").summary.endswith(f"; {refusal}")
    world.state.on_pod_group(world.state.groups["ns/a"], None)
    assert world.explain("a", "job").summary == f"it has no gang: the Job is Pending (FailedCreate: {refusal})"


def test_a_failed_gang_names_its_first_failed_member() -> None:
    """With its exit code, before the owner's message."""
    world = ExplainWorld()
    ended = {"name": "main", "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}
    says(world, gang(world, 2), 1, msgspec.convert({"phase": "Failed", "containerStatuses": [ended]}, PodStatus))
    known = world.state.groups["ns/a"]
    status = replace(known.status, phase="Completed", failed=1, ending="backoffLimit 0")
    world.state.on_pod_group(known, replace(known, status=status))
    report = world.gang_report("a")
    assert (report.cause, report.state) == ("failed", "Failed")
    first = "pod a-worker-1 on node-1 failed: container main: exit code 137 (OOMKilled)"
    assert report.summary == f"it failed: {first}; backoffLimit 0"


def test_a_failed_job_without_a_gang() -> None:
    """By its status, with its restarts; a TrainJob's Job that was terminated has failed, too."""
    world = ExplainWorld().nodes(1)
    world.runs("a", 1, GPU8)
    world.state.on_pod_group(world.state.groups["ns/a"], None)
    [job] = world.state.jobs.values()
    job.status.state.phase, job.status.state.message, job.status.retry_count = "Failed", "pod a-0 failed", 3
    report = world.explain("a", "job")
    assert (report.cause, report.summary) == ("failed", "it failed: pod a-0 failed")
    assert report.details == ["the Job was restarted 2 of at most 2 times"]
    job.status.retry_count = 0
    assert world.explain("a", "job").details == []
    job.status.state.phase = "Terminated"
    report = world.explain("a", "job")
    assert (report.state, report.cause) == ("Terminated", "finished")
    assert report.summary == "it has no gang: the Job is Terminated (pod a-0 failed)"
    job.status.state.message, job.status.failed = "all pods have finished or are gone; pod a-0 failed", 1
    report = world.explain("a", "job")
    assert (report.cause, report.summary) == ("failed", "it failed: pod a-0 failed")
    assert report.details == ["1 of its 1 pod failed"]
    made = manifests.owner("fit", "TrainJob", "trainer.kubeflow.org/v1alpha1", "uid-fit")
    job.metadata.owner_references = [msgspec.convert(made, OwnerReference)]
    report = world.explain("a", "job")
    assert (report.state, report.workload) == ("Failed", "TrainJob ns/fit")


def test_that_all_members_are_being_deleted_is_said() -> None:
    """They hold the room that the gang needs; without a new pod the owner may want none."""
    world = ExplainWorld().nodes(2)
    key = world.runs("a", 2, GPU8)
    leaves = {"deletion_timestamp": "2027-01-15T08:00:00Z", "deletion_grace_period_seconds": 30}
    for rank in range(2):
        world.pod(key, "worker", rank, GPU8, node=f"node-{rank}", phase="Running", **leaves)
    assert world.explain("a").summary.endswith("; its 2 pods that exist are being deleted")
    key = world.pod_group("b", 2)
    world.pod(key, "worker", 0, GPU8, node="node-0", phase="Running", **leaves)
    told = "0 of the 2 pods that start together exist; its pod that exists is being deleted"
    assert world.explain("b", "gang").summary == f"it waits: {told}"
    world.pod(key, "worker", 1, GPU8, gated=True)
    assert "being deleted" not in world.explain("b", "gang").summary


def test_what_becomes_of_members_on_a_suspect_node() -> None:
    """The node, the condition, the policy, and why it is that one."""
    world = ExplainWorld()
    gang(world)
    world.node("node-3", conditions={"KernelDeadlock": "True"})
    [line] = [line for line in world.gang_report("a").details if "KernelDeadlock" in line]
    assert line == (
        "node node-3 is suspect (condition KernelDeadlock=True): by the policy replace its 1 member there will be"
        " replaced, as the others are enough to continue"
    )


@pytest.mark.parametrize(("least", "text"), [
    (4, "worker: 4 pods, 4 of them start together; each 4 cpu, 8 nvidia.com/gpu"),
    (2, "worker: 4 pods, 2 of them start together; each 4 cpu, 8 nvidia.com/gpu"),
    (1, "worker: 4 pods, 1 is enough to start; each 4 cpu, 8 nvidia.com/gpu"),
])  # fmt: skip
def test_an_elastic_gang_needs_its_minimum(least: int, text: str) -> None:
    """Minimums of tasks count only where that of the Job covers their sum, as Volcano reads both."""
    world = ExplainWorld().nodes(1)
    world.gang("a", {"worker": (4, GPU8)}, min_member=least)
    assert ("needs", text) in {(line.label, line.text) for line in lines_of(world.gang_report("a"), world.now)}


def test_pods_that_wait_without_our_gate_are_counted() -> None:
    """Executors beside a driver that runs: behind Muster's gate, behind that of others, and without any."""
    world = ExplainWorld().nodes(1)
    key = world.pod_group("a", 1, phase="Running")
    world.pod(key, "pods", 0, {}, node="node-0", phase="Running")
    world.pod(key, "pods", 1, GPU8, gated=True)
    world.pod(key, "pods", 2, GPU8, other_gates=("theirs",))
    world.pod(key, "pods", 3, GPU8)
    texts = [line.text for line in lines_of(world.gang_report("a"), world.now)]
    assert "pods: 1 bound, 1 behind the gate, 2 waiting without the gate" in texts

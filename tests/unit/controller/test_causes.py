"""Nothing is done twice or without a cause, and no failure stops more than it must, on the simulated cluster."""

from collections.abc import Sequence
from typing import Any, cast

import pytest
from simulated_cluster import Cluster
from simulated_jobs import add, brief, fail, job, order, pods, submit, task, told, trickle, turn

from muster.api.kubernetes.core import PODS, SERVICES
from muster.api.volcano.batch import COMMANDS, JOBS
from muster.api.volcano.scheduling import POD_GROUPS
from muster.volcano.tasks import reference

SEEDS = pytest.mark.parametrize("cluster", range(8), indirect=True)

PARTITIONS = {"totalPartitions": 4, "partitionSize": 2, "minPartitions": 2}


@pytest.mark.parametrize(("action", "tasks", "least", "failed"), [
    pytest.param("RestartTask", [task("w", 10), task("v", 10)], 5, range(10), id="of a task, in an elastic Job"),
    pytest.param("RestartPartition", [task("w", 8, minAvailable=4, partitionPolicy=PARTITIONS)], 4, (2, 3),
        id="of a partition"),
])  # fmt: skip
@SEEDS
def test_pods_that_fail_together_are_one_restart(
    cluster: Cluster, action: str, tasks: list[dict[str, Any]], least: int, failed: Sequence[int]
) -> None:
    """The Job may be Pending again while the old pods still tell that they have failed; other partitions run on."""
    add(cluster, "j", *tasks, minAvailable=least, policies=[{"events": ["PodFailed"], "action": action}])
    assert cluster.converge()
    fail(cluster, *(f"j-w-{index}" for index in failed))
    trickle(cluster)
    assert cluster.converge()
    assert brief(cluster) == ("Running", 1)


def test_an_abort_of_a_pod_that_failed_before_we_deleted_it_is_not_lost(cluster: Cluster) -> None:
    """Only restarts are covered by the restart that came first."""
    policies = [{"exitCode": 3, "action": "RestartTask"}, {"events": ["PodFailed"], "action": "AbortJob"}]
    add(cluster, "j", task("w", 4), minAvailable=1, policies=policies)
    assert cluster.converge()
    cluster._phase(cluster.api.find(PODS, "j-w-0", "n"), "Failed", exit_code=3)
    fail(cluster, "j-w-1")
    trickle(cluster)
    assert cluster.converge()
    assert brief(cluster) == ("Aborted", 1)


def test_one_restart_of_a_task_ends_the_timers_of_its_pods(cluster: Cluster) -> None:
    """A second timer of the same task does not hit the pods that have just been made."""
    submit(cluster, "j", 3, {"events": ["PodFailed"], "action": "RestartTask", "timeout": "30s"})
    fail(cluster, "j-w-0")
    turn(cluster)
    cluster.now_s += 5
    fail(cluster, "j-w-1")
    turn(cluster)
    cluster.now_s += 25.1
    turn(cluster)
    assert brief(cluster) == ("Restarting", 1)
    for pod in pods(cluster):
        cluster.api.remove(PODS, pod, at_once=True)
    turn(cluster, 3)
    cluster.now_s += 5.1
    turn(cluster, 3)
    assert brief(cluster) == ("Pending", 1)
    assert len(pods(cluster)) == 3


def test_a_timer_is_carried_out_when_it_is_due(cluster: Cluster) -> None:
    """At that very moment, and not before."""
    submit(cluster, "j", 2, {"events": ["PodFailed"], "action": "AbortJob", "timeout": "30s"}, minAvailable=1)
    fail(cluster, "j-w-0")
    turn(cluster)
    began_s = cluster.now_s
    for after_s, phase in ((29.0, "Running"), (30.0, "Aborting")):
        cluster.now_s = began_s + after_s
        cluster.controller.jobs.worker.queue.add("n/j")
        turn(cluster)
        assert brief(cluster) == (phase, 0)


def test_a_restart_ends_timers_of_the_job_about_the_same_pods(cluster: Cluster) -> None:
    """`AbortJob unless it is back in a minute` has no point any more once the task is restarted."""
    policies = [
        {"exitCode": 3, "action": "RestartTask"},
        {"events": ["PodFailed"], "action": "AbortJob", "timeout": "60s"},
    ]
    submit(cluster, "j", 2, *policies)
    fail(cluster, "j-w-0")
    turn(cluster)
    cluster._phase(cluster.api.find(PODS, "j-w-1", "n"), "Failed", exit_code=3)
    turn(cluster)
    assert brief(cluster) == ("Restarting", 1)
    assert not cluster.controller.jobs._reconciler._actions._timers[job(cluster, "j").metadata.uid]


def test_deletions_of_ours_that_a_watch_misses_are_no_evictions(cluster: Cluster) -> None:
    """Mark and end of the pods fall into the gap before the cache lists again."""
    submit(cluster, "j", 4, {"events": ["*"], "action": "AbortJob"}, minAvailable=1)
    cluster.api.change(JOBS, "j", {"spec": {"tasks": [task("w", 1)]}}, "n")
    turn(cluster)
    for pod in pods(cluster):
        if pod.metadata.deletion_timestamp:
            cluster.api.remove(PODS, pod, at_once=True)
    cluster._list("pods", cluster.controller.reflectors["pods"])
    assert cluster.converge()
    assert brief(cluster) == ("Running", 0)


def test_kills_of_a_job_that_has_completed_raise_no_policy(cluster: Cluster) -> None:
    """Enough pods succeeded, so the others go: nobody evicted them, and nothing is told of a restart."""
    submit(cluster, "j", 3, {"events": ["PodEvicted"], "action": "RestartJob"}, minSuccess=1)
    events = told(cluster)
    cluster._phase(pods(cluster)[0], "Succeeded", exit_code=0)
    assert cluster.converge()
    assert brief(cluster) == ("Completed", 0)
    assert not [message for reason, message in events if reason == "ExecuteAction"]


@pytest.mark.parametrize("action", ["RestartTask", "RestartPod", "RestartPartition"])
def test_an_event_that_names_no_task_restarts_none(cluster: Cluster, action: str) -> None:
    """It uses up no retry, whoever controls; the user is told."""
    submit(cluster, "j", 2, {"events": ["Unknown"], "action": action})
    events = told(cluster)
    (group,) = cluster.api.all(POD_GROUPS)
    cluster.api.change(POD_GROUPS, group.metadata.name, {"status": {"phase": "Unknown"}}, "n")
    turn(cluster, 3)
    assert any("names no task" in message for _, message in events)
    cluster.restart()
    turn(cluster, 3)
    assert brief(cluster) == ("Running", 0)


def test_commands_are_carried_out_in_the_order_in_which_they_were_given(cluster: Cluster) -> None:
    """Also by a process that finds them when it starts: an API server lists by name."""
    made = submit(cluster, "j", 2)
    order(cluster, "AbortJob", made, "z-suspend")
    cluster.now_s += 60
    order(cluster, "ResumeJob", made, "a-resume")
    commands = cluster.api.kind(COMMANDS)
    by_name = sorted(commands.items())
    commands.clear()
    commands.update(by_name)
    cluster.restart()
    assert cluster.converge()
    assert brief(cluster) == ("Running", 0)


def test_nothing_is_kept_of_a_job_that_goes_during_a_pass(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the pass notes after the news that the Job is gone goes, too."""
    submit(cluster, "j", 3, {"events": ["PodEvicted"], "action": "AbortJob", "timeout": "60s"})
    context = cluster.controller.jobs._reconciler._context
    hold = context.writer._hold

    def held(uid: str, status: Any, rest_s: float) -> float:
        cluster.api.remove(JOBS, job(cluster, "j"), at_once=True)
        cluster.deliver(everything=True)
        monkeypatch.setattr(context.writer, "_hold", hold)
        return hold(uid, status, rest_s)

    fail(cluster, "j-w-0")
    cluster.deliver(everything=True)
    monkeypatch.setattr(context.writer, "_hold", held)
    cluster.work(1)
    cluster.api.collect()
    assert cluster.converge()
    actions = cluster.controller.jobs._reconciler._actions
    assert not context.writer._held
    assert not actions._timers
    assert not context.objects._synced_generation
    assert not context.groups._fits
    assert not cluster.controller.jobs._written._written
    assert not cluster.defects


def test_what_was_done_for_a_job_that_is_gone_is_forgotten(cluster: Cluster) -> None:
    """Pods and PodGroup that no cache has shown, counters, refusals, and what its objects fit."""
    made = submit(cluster, "j", 1)
    context = cluster.controller.jobs._reconciler._context
    (group,) = cluster.api.all(POD_GROUPS)
    context.expectations.pod_created(reference(made), pods(cluster)[0])
    context.expectations.groups.note(group)
    assert not context.expectations.satisfied(reference(made), group.metadata.key)
    uid, something = made.metadata.uid, cast("Any", object())
    memories = (context.writer._held, context.effects._refusals._jobs, context.objects._synced_generation)
    for memory in memories:
        memory[uid] = something
    assert [*context.groups._fits] == [group.metadata.key]
    context.forget(made)
    assert context.expectations.satisfied(reference(made), group.metadata.key)
    assert [*map(len, memories), len(context.groups._fits)] == [0, 0, 0, 0]


def test_an_eviction_of_a_pending_job_that_nobody_saw(cluster: Cluster) -> None:
    """Some of its pods ran already."""
    add(cluster, "j", task("w", 2), task("x", 1), policies=[{"events": ["PodEvicted"], "action": "TerminateJob"}])
    turn(cluster)
    cluster._plan_group(cluster.api.all(POD_GROUPS)[0], everything=True)
    turn(cluster, 2)
    name = pods(cluster)[0].metadata.name
    cluster.api.change(PODS, name, {"spec": {"schedulingGates": None, "nodeName": "n"}}, "n")
    cluster._phase(cluster.api.find(PODS, name, "n"), "Running")
    turn(cluster, 3, pause_s=1)
    assert job(cluster, "j").status.running == 1
    cluster.api.remove(PODS, cluster.api.find(PODS, name, "n"), at_once=True)
    cluster.restart()
    turn(cluster, 2)
    assert job(cluster, "j").status.state.phase in {"Terminating", "Terminated"}


def test_each_eviction_that_nobody_saw_has_a_timer(cluster: Cluster) -> None:
    """One pod that is back does not end the timer of the other."""
    submit(cluster, "j", 3, {"events": ["PodEvicted"], "action": "TerminateJob", "timeout": "60s"}, minAvailable=1)
    for pod in pods(cluster)[:2]:
        cluster.api.remove(PODS, pod, at_once=True)
    cluster.restart()
    turn(cluster)
    (timers,) = cluster.controller.jobs._reconciler._actions._timers.values()
    assert [timer.request.pod for timer in timers.values()] == ["j-w-0", "j-w-1"]


def test_objects_of_plugins_stay_while_pods_end(cluster: Cluster) -> None:
    """They may still look for each other by name."""
    submit(cluster, "j", 3, minSuccess=1, plugins={"svc": []})
    cluster._phase(pods(cluster)[0], "Succeeded", exit_code=0)
    turn(cluster, 3)
    assert any(pod.metadata.deletion_timestamp for pod in pods(cluster))
    assert [one.metadata.name for one in cluster.api.all(SERVICES)] == ["j"]
    assert cluster.converge()
    assert not cluster.api.all(SERVICES)


def test_a_pod_of_an_earlier_version_is_replaced(cluster: Cluster) -> None:
    """Somebody who did not know of the restart has created it; its events would be taken for old ones."""
    made = submit(cluster, "j", 2)
    turn(cluster)
    order(cluster, "RestartJob", made)
    assert cluster.converge()
    name = pods(cluster)[0].metadata.name
    cluster.api.change(PODS, name, {"metadata": {"annotations": {"volcano.sh/job-version": "0"}}}, "n")
    cluster.restart()
    assert cluster.converge()
    assert {pod.metadata.annotations["volcano.sh/job-version"] for pod in pods(cluster)} == {"1"}
    assert brief(cluster) == ("Running", 1)


def test_an_eviction_just_before_our_own_deletion_is_not_lost(cluster: Cluster) -> None:
    """The restart finds the pod gone: somebody evicted it, and a policy is about that."""
    policies = [{"events": ["PodFailed"], "action": "RestartTask"}, {"events": ["PodEvicted"], "action": "AbortJob"}]
    submit(cluster, "j", 3, *policies, minAvailable=1)
    fail(cluster, "j-w-0")
    cluster.deliver(everything=True)
    cluster.api.remove(PODS, cluster.api.find(PODS, "j-w-1", "n"), at_once=True)
    cluster.work(5)
    assert cluster.converge()
    assert brief(cluster) == ("Aborted", 1)


def test_a_timer_of_an_evicted_pod_is_noted_at_once(cluster: Cluster) -> None:
    """Its slot may have another pod before another process looks."""
    submit(cluster, "j", 3, {"events": ["PodEvicted"], "action": "TerminateJob", "timeout": "60s"}, minAvailable=1)
    cluster.api.remove(PODS, pods(cluster)[0], at_once=True)
    turn(cluster)
    assert len(pods(cluster)) == 3
    cluster.restart()
    cluster.now_s += 61
    turn(cluster, 2)
    assert job(cluster, "j").status.state.phase == "Terminating"


def test_counters_of_a_restart_of_two_tasks(cluster: Cluster) -> None:
    """What is published while pods go is what will be."""
    add(cluster, "j", task("w", 3), task("v", 3), policies=[{"events": ["PodFailed"], "action": "RestartTask"}])
    assert cluster.converge()
    fail(cluster, "j-w-0", "j-v-0")
    seen: list[tuple[int, int, int]] = []
    change = cluster.api._seen

    def watched(res: Any, old: Any, new: Any) -> None:
        change(res, old, new)
        if res is JOBS and new:
            seen.append((new.status.running, new.status.failed, new.status.terminating))

    cluster.api._seen = watched
    turn(cluster)
    assert seen[1] == (0, 0, 6), "the second write knows both tasks"
    assert len(seen) <= 3


def test_many_pods_that_are_restarted_are_noted_in_one_write(cluster: Cluster) -> None:
    """Each pod for itself, all in one pass."""
    submit(cluster, "j", 50, {"events": ["PodFailed"], "action": "RestartPod"}, minAvailable=1)
    fail(cluster, *(f"j-w-{index}" for index in range(50)))
    writes = len(cluster.api.changes(JOBS))
    turn(cluster)
    assert len(cluster.api.changes(JOBS)) - writes <= 3
    assert cluster.converge()
    assert brief(cluster) == ("Running", 1)


def test_a_cache_that_is_late_is_no_eviction(cluster: Cluster) -> None:
    """A standby takes over whose watch of pods is behind: the pods are asked for before anything is done."""
    submit(cluster, "j", 3, {"events": ["PodEvicted"], "action": "AbortJob"})
    fresh = cluster._new_controller
    late = cluster.api.kind(PODS)
    hidden = dict(late)
    late.clear()
    cluster.controller = fresh()
    late.update(hidden)
    turn(cluster, 2)
    assert brief(cluster) in {("Running", 0), ("Pending", 0)}
    assert {pod.metadata.uid for pod in pods(cluster)} == {pod.metadata.uid for pod in hidden.values()}


def test_an_obstacle_is_told_once_however_many_passes_find_it(cluster: Cluster) -> None:
    """Another kind is told again, and so is the same one once it was over; other numbers are no news."""
    add(cluster, "j", task("w", 2))
    turn(cluster, 3)
    [group] = cluster.api.all(POD_GROUPS)
    events = told(cluster)

    def says(status: str, reason: str, message: str) -> None:
        condition = {"type": "Unschedulable", "status": status, "reason": reason, "message": message}
        change = {"status": {"phase": "Inqueue", "conditions": [condition]}}
        cluster.api.change(POD_GROUPS, group.metadata.name, change, "n")
        for _ in range(3):
            turn(cluster, 2)
            for worker in cluster.controller.workers:
                worker.queue.add("n/j")

    says("True", "NotEnoughResources", "no room for 3")
    says("True", "NotEnoughResources", "no room for 2")
    says("True", "QueueNotOpen", "no queue")
    says("False", "Admitted", "over")
    says("True", "QueueNotOpen", "no queue")
    pending = [message for reason, message in events if reason == "PodGroupPending"]
    assert pending == ["no room for 3", "no queue", "no queue"]

"""Execution of actions on Jobs, either at once or after a timeout.

`Actions.handle` follows the steps of `controller.job.rules.policies`. First, the new phase is written, together with
the restart target and a new version, which makes the old pods outdated. Afterwards, the work of the new phase
(`controller.job.reconcile`) deletes the pods, in the same pass or in a later one.
"""

from dataclasses import replace
from typing import get_args

from msgspec import structs
from prometheus_client import Counter

from controller.job.context import Context, JobSnapshot
from controller.job.rules import budget, events, notes, policies, timers
from controller.job.rules import status as statuses
from controller.job.rules.done import existing, forgotten
from controller.job.rules.events import JobEvent
from controller.job.rules.phases import count, without
from controller.job.rules.policies import Match, PodEffect, PolicyAction, PolicyCell, RestartTarget
from controller.job.rules.timers import Timer
from controller.live import get_or_none
from muster.api.kubernetes.core import PODS
from muster.api.kubernetes.meta import parse_time
from muster.api.volcano.batch import RESUME_COUNTS, Job, JobStatus, compat
from muster.process.counters import from_zero
from muster.volcano.tasks import job_minimum

ACTIONS = Counter("muster_controller_actions_total", "Actions carried out on Jobs, by action.", ["action"])
RESTARTS = Counter(
    "muster_controller_restarts_total",
    "Restarts of Jobs, and of parts of Jobs, that policies have caused, by cause of the fault.",
    ["fault"],
)
from_zero(ACTIONS, PolicyAction)
from_zero(RESTARTS, get_args(budget.Fault))


class Actions:
    """The executor of requested actions, which also keeps the timers of each Job.

    For each Job, call `first_sight` before the other methods.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._timers: dict[str, dict[object, Timer]] = {}

    def first_sight(self, job: Job, snapshot: JobSnapshot) -> list[JobEvent]:
        """Take over the timers of an earlier process when this process handles the Job for the first time.

        Return the evictions of the Job's pods that no process has observed.
        """
        if job.metadata.uid in self._timers:
            return []
        client, namespace = self._context.client, job.metadata.namespace
        # The cache may be stale, so ask the API server whether the pod still exists.
        evicted = [
            request
            for request in events.unseen_evictions(job, snapshot.pods)
            if get_or_none(client, PODS, request.pod, namespace) is None
        ]
        self._timers[job.metadata.uid] = {timer.key: timer for timer in timers.timers_of(job.status)}
        return evicted

    def noted(self, job: Job, status: JobStatus) -> JobStatus:
        """Return the status with a record of the Job's timers, so that another process can take over the timers."""
        return timers.noted(status, self._timers.get(job.metadata.uid, {}).values())

    def handle(self, job: Job, request: JobEvent, snapshot: JobSnapshot) -> Job:
        """Carry out the action that a request causes, or start a timer for the action; return the Job.

        If the action is a sync, the Job is returned unchanged.
        """
        found = self._match(job, request, snapshot)
        if found.action == PolicyAction.SYNC_JOB:
            return job
        if found.delay_s > 0:
            return self._arm(job, request, found)
        return self.carry_out(job, found.action, request, snapshot)

    def restart_more(self, job: Job, snapshot: JobSnapshot) -> Job:
        """Record all further restart targets of this pass in the Job's status, in a single write."""
        if not snapshot.targets or job.status.state.phase != "Restarting":
            return job
        status = job.status
        for target in snapshot.targets.values():
            status = policies.restarting(status, target)
        job = self._write_job_status(job, status, snapshot)
        snapshot.targets.clear()
        return job

    def expire(self, job: Job, snapshot: JobSnapshot) -> Job:
        """Carry out the actions of due timers; drop timers whose event no longer applies; return the Job."""
        now_s = self._context.wall_s()
        armed = self._timers.get(job.metadata.uid, {})
        for timer in [timer for timer in armed.values() if timer.to_check(now_s)]:
            if timer.key not in armed:
                continue  # an earlier timer's action has covered it
            found = self._match(job, timer.request, snapshot)
            phase = snapshot.group.status.phase if snapshot.group else ""
            if found.action == PolicyAction.SYNC_JOB or not timers.still_true(
                timer.request, job, snapshot.by_name, phase
            ):
                del armed[timer.key]
            elif timer.due_s > now_s + found.delay_s:  # the clock was set back
                armed[timer.key] = replace(timer, due_s=now_s + found.delay_s)
            elif timer.due_s <= now_s:
                # A timer is about a slot without a working pod: another pod may have the name by now.
                here, request = snapshot.by_name.get(timer.request.pod), timer.request
                if here and request.pod_uid:
                    request = replace(request, pod_uid=here.metadata.uid)
                job = self.carry_out(job, found.action, request, snapshot)
                armed.pop(timer.key, None)
        due = min((timer.due_s for timer in armed.values()), default=None)
        if due is not None:
            self._context.requeue_after(job.metadata.key, max(due - now_s, 0.001))
        return job

    def forget(self, job: Job) -> None:
        """Drop the timers of a deleted Job."""
        self._timers.pop(job.metadata.uid, None)

    def _match(self, job: Job, request: JobEvent, snapshot: JobSnapshot) -> Match:
        """Return the action for a new event; the action is a sync if this process itself has caused the event."""
        if request.event in {events.TASK_COMPLETED, events.TASK_FAILED}:
            outcome = events.task_outcome(job, request.task, snapshot.pods)
            if outcome is None:
                return policies.SYNC
            request = replace(request, event=outcome)
        other = request.group_uid and (snapshot.group is None or snapshot.group.metadata.uid != request.group_uid)
        if other or (request.event == events.POD_EVICTED and snapshot.is_done(request.pod)):
            return policies.SYNC
        found = policies.match(job, request)
        if self._handled(job, request, found.action):
            return policies.SYNC
        if found.action in policies.TARGETED and not request.task:
            why = f"event {request.event} names no task, so {found.action} is not carried out; use RestartJob for it"
            self._context.recorder.event(job, "Warning", "ExecuteAction", why)
            return policies.SYNC
        return found

    def _handled(self, job: Job, request: JobEvent, action: str) -> bool:
        """Return True if a restart has already replaced the pod of this event, or the Job is being stopped."""
        deletion = self._context.expectations.deletion(request.pod_uid)
        if deletion and (action in policies.TARGETED or (deletion.ours and request.event == events.POD_EVICTED)):
            return True
        cell = policies.step(job.status.state.phase, action)
        return cell.effect is PodEffect.KILL_SOFT and not cell.enter

    def _arm(self, job: Job, request: JobEvent, found: Match) -> Job:
        """Start a timer, unless the event already has a timer or a restart in progress includes its pod or task."""
        timer = Timer((request.since_s or self._context.wall_s()) + found.delay_s, request)
        armed = self._timers.setdefault(job.metadata.uid, {})
        covered = any(target.covers(request) for target in policies.restart_targets(job.status))
        if timer.key not in armed and not covered:
            armed[timer.key] = timer
            self._event(job, f"Execute action {found.action} after {statuses.format_duration(found.delay_s)}")
        return job

    def carry_out(self, job: Job, action: str, request: JobEvent, snapshot: JobSnapshot) -> Job:
        """Carry out an action; return the Job."""
        cell = policies.step(job.status.state.phase, action)
        if action == PolicyAction.RESUME_JOB and cell.enter and RESUME_COUNTS in compat(job.metadata):
            cell = cell._replace(retry=True)
        target = policies.target_of(action, request)
        if cell.effect is PodEffect.KILL_TARGET and not cell.enter:
            snapshot.targets[request] = target
        else:
            status = self._entered(job, cell, action, request, target, snapshot)
            if request.command_uid:
                status = notes.commanded(status, request.command_uid)
            job = self._write_job_status(job, status, snapshot)
            if cell.effect is not PodEffect.SYNC:
                snapshot.targets.clear()  # the new phase covers them
        if cell.effect is not PodEffect.SYNC:
            self._drop_timers(job.metadata.uid, target, request)
        ACTIONS.labels(action if action in PolicyAction._value2member_map_ else "unknown").inc()
        if cell.enter or cell.effect is not PodEffect.KILL_SOFT:  # not for a Command to a Job that is already stopping
            self._event(job, f"Start to execute action {action} ")
        return job

    def _entered(
        self, job: Job, cell: PolicyCell, action: str, request: JobEvent, target: RestartTarget, snapshot: JobSnapshot
    ) -> JobStatus:
        """Return the status of a Job at the beginning of an action; the status is written before any pod is deleted.

        `cell` is the action's entry in `policies.TABLE`.
        """
        status, now_s = job.status, self._context.wall_s()
        ran_s = now_s - (parse_time(status.state.last_transition_time) or now_s)
        if cell.enter:
            status = statuses.moved(status, cell.enter, action, _why(request), now_s)
        if cell.retry:
            codes = budget.infrastructure_codes(job.metadata.annotations)
            fault = budget.fault_of(request, snapshot.pods, now_s, codes)
            status = budget.charged(job, status, request, fault, now_s)
            if not request.command:
                RESTARTS.labels(fault).inc()
            status = timers.restarted(status, request, now_s, ran_s)
        whole = cell.effect is PodEffect.KILL_ALL
        if whole or (cell.enter and cell.effect is not PodEffect.KILL_TARGET):
            status = structs.replace(status, version=status.version + 1)
        if whole or cell.enter == "Restarting" or cell.effect is PodEffect.KILL_TARGET:
            status = policies.restarting(status, target)
        return status

    def _write_job_status(self, job: Job, status: JobStatus, snapshot: JobSnapshot) -> Job:
        """Write the status; return the Job.

        The counters in the status count pods that are about to be deleted as terminating.
        """
        if statuses.only_counters(job.status, status):
            return job
        to_delete = policies.pods_to_delete(structs.replace(job, status=status), snapshot.pods)
        counts = count(without(snapshot.pods, to_delete))
        counts.terminating += len(existing(to_delete))
        status = statuses.counted(forgotten(job, status, to_delete), counts, job_minimum(job.spec))
        return self._context.writer.write(job, statuses.finished_with_duration(job, status))

    def _drop_timers(self, uid: str, target: RestartTarget, request: JobEvent) -> None:
        """Drop the timers of events about pods and tasks that are restarted with `target`."""
        armed = self._timers.get(uid, {})
        for key, timer in list(armed.items()):
            same_pod = target.kind == "pod" and timer.request.pod == request.pod
            if same_pod or target.covers(timer.request):
                del armed[key]

    def _event(self, job: Job, message: str) -> None:
        self._context.recorder.event(job, "Normal", "ExecuteAction", message)


def _why(request: JobEvent) -> str:
    """Return a description of the event for the message in the Job's status."""
    if request.command:
        return f"requested by Command {request.command}"
    if not request.pod:
        return f"event {request.event}"
    codes = f" with exit code {', '.join(map(str, request.exit_codes))}" if request.exit_codes else ""
    refused = f", which kubelet refused ({request.refused})" if request.refused else ""
    return f"event {request.event} of pod {request.pod}{codes}{refused}"

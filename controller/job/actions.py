"""Carries out actions on a Job: those that policies lead to, at once or after a timeout, and those of Commands.

The phase that an action enters is written first, with the version that makes the old pods outdated and a note of what
is restarted; then pods are deleted. What is left undone follows from the phase, so the next pass completes it.
"""

from collections.abc import Iterable
from dataclasses import replace

from msgspec import structs

from controller.job import request as event
from controller.job import status as statuses
from controller.job.context import Context
from controller.job.counts import count
from controller.job.events import task_outcome, unseen_evictions
from controller.job.kill import Target, target_of, victims
from controller.job.machine import Action, Effect, Step, step
from controller.job.policies import Match, match
from controller.job.request import Request
from controller.job.timers import Timer, from_note, still_true, to_note
from controller.metrics import ACTIONS
from controller.worker import Retry
from muster.api.batch import Job, JobStatus
from muster.api.compat import RESUME_COUNTS, compat
from muster.api.core import Pod

_SYNC = Match(Action.SYNC_JOB)


class Actions:
    """Requests → actions. Keeps the timers, by the UID of the Job.

    `first_sight` comes before everything else about a Job.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._timers: dict[str, list[Timer]] = {}

    def first_sight(self, job: Job) -> list[Request]:
        """Takes over the timers of an earlier process; what happened to the Job's pods while nobody watched."""
        if job.metadata.uid in self._timers:
            return []
        self._timers[job.metadata.uid] = from_note(job.status.controlled_resources.get(statuses.TIMERS_NOTE, ""))
        return unseen_evictions(job, self._context.pods(job))

    def noted(self, job: Job, status: JobStatus) -> JobStatus:
        """The status with a note of the timers."""
        return statuses.timed(status, to_note(self._timers.get(job.metadata.uid, ())))

    def handle(self, job: Job, request: Request) -> Job:
        """The Job after this request; a request that leads to nothing but a sync leaves it as it is."""
        found = self._match(job, request)
        if found.action == Action.SYNC_JOB:
            return job
        if found.delay_s > 0:
            return self._arm(job, request, found)
        return self._carry_out(job, found.action, request)

    def expire(self, job: Job) -> Job:
        """The Job after the timers that are due; those that have lost their point are dropped."""
        uid, now_s = job.metadata.uid, self._context.now_s()
        for timer in self._timers.get(uid, ()):
            found = self._match(job, timer.request)
            true = self._still_true(job, timer.request)
            if found.action == Action.SYNC_JOB or not true:
                self._drop(uid, timer)
            elif timer.due_s <= now_s:
                job = self._carry_out(job, found.action, timer.request)
                self._drop(uid, timer)
        due = min((timer.due_s for timer in self._timers.get(uid, ())), default=None)
        if due is not None:
            self._context.again(job.metadata.key, max(due - now_s, 0.001))
        return job

    def forget(self, job: Job) -> None:
        """The Job is gone, and its timers with it."""
        self._timers.pop(job.metadata.uid, None)

    def carry_out_command(self, job: Job, request: Request) -> Job:
        """The Job after a Command; one that was carried out before is not carried out again."""
        if statuses.was_commanded(job.status, request.command_uid):
            return job
        return self._carry_out(job, request.action, request)

    def _match(self, job: Job, request: Request) -> Match:
        if request.event in {event.TASK_COMPLETED, event.TASK_FAILED}:
            outcome = task_outcome(job, request.task, self._context.pods(job))
            if outcome is None:
                return _SYNC
            request = replace(request, event=outcome)
        if request.group_uid:
            group = self._context.groups.find(job)
            if group is None or group.metadata.uid != request.group_uid:
                return _SYNC
        return match(job, request)

    def _still_true(self, job: Job, request: Request) -> bool:
        group = self._context.groups.find(job)
        return still_true(request, job, self._context.pods(job), group.status.phase if group else "")

    def _arm(self, job: Job, request: Request, found: Match) -> Job:
        now_s = self._context.now_s()
        timer = Timer((request.since_s or now_s) + found.delay_s, request)
        timers = self._timers.setdefault(job.metadata.uid, [])
        if any(_same(timer.request, other.request) for other in timers):
            return job
        timers.append(timer)
        self._event(job, f"Execute action {found.action} after {statuses.format_duration(found.delay_s)}")
        return job

    def _drop(self, uid: str, timer: Timer) -> None:
        self._timers[uid] = [other for other in self._timers[uid] if other is not timer]

    def _carry_out(self, job: Job, action: str, request: Request) -> Job:
        cell = step(job.status.state.phase, action)
        if action == Action.RESUME_JOB and cell.enter and RESUME_COUNTS in compat(job.metadata):
            cell = cell._replace(retry=True)
        target = target_of(action, request)
        status = self._entered(job.status, cell, action, request, target)
        after = structs.replace(job, status=status)
        pods = self._context.pods(job)
        doomed = victims(after, pods, cell.effect, target) if cell.effect is not Effect.SYNC else []
        if request.command_uid:
            status = statuses.commanded(status, request.command_uid)
        if not statuses.only_counters(job.status, status):
            counts = count(_without(pods, doomed))
            counts.terminating += len(doomed)
            status = statuses.counted(status, counts, job.spec.min_available)
            job = self._context.writer.write(job, statuses.finished_with_duration(job, status))
        ACTIONS.labels(action if action in Action._value2member_map_ else "unknown").inc()
        self._event(job, f"Start to execute action {action} ")
        if cell.effect is Effect.KILL_TARGET:
            failures = self._context.effects.delete_pods(job, doomed, why=action, mark=True)
            if failures:
                raise Retry("; ".join(failures))
        return job

    def _entered(self, status: JobStatus, cell: Step, action: str, request: Request, target: Target) -> JobStatus:
        """The status with what the step writes before anything is done."""
        if cell.enter:
            status = statuses.moved(status, cell.enter, action, _why(request), self._context.now_s())
        if cell.retry:
            status = structs.replace(status, retry_count=status.retry_count + 1)
        again = cell.effect is Effect.KILL_ALL
        if again or (cell.enter and cell.effect is not Effect.KILL_TARGET):
            status = structs.replace(status, version=status.version + 1)
        if again or cell.enter == "Restarting" or cell.effect is Effect.KILL_TARGET:
            status = statuses.restarting(status, target)
        return status

    def _event(self, job: Job, message: str) -> None:
        self._context.recorder.event(job, "Normal", "ExecuteAction", message)


def _without(pods: Iterable[Pod], doomed: Iterable[Pod]) -> list[Pod]:
    uids = {pod.metadata.uid for pod in doomed}
    return [pod for pod in pods if pod.metadata.uid not in uids]


def _same(one: Request, other: Request) -> bool:
    return (one.event, one.pod_uid, one.task) == (other.event, other.pod_uid, other.task)


def _why(request: Request) -> str:
    """The event in a sentence for the Job's status."""
    if request.command:
        return f"asked for by Command {request.command}"
    if not request.pod:
        return f"event {request.event}"
    codes = f" with exit code {', '.join(map(str, request.exit_codes))}" if request.exit_codes else ""
    return f"event {request.event} of pod {request.pod}{codes}"

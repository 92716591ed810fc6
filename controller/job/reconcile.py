"""One pass over a Job: deal with what happened to it, then do the work of the phase that it is in."""

from collections.abc import Sequence

from msgspec import structs

from controller.job.actions import Actions
from controller.job.commands import Commands
from controller.job.context import Context, JobSnapshot
from controller.job.expectations import KEPT_S
from controller.job.failures import RECOVERABLE, Failure, summary
from controller.job.pending_events import PendingEvents
from controller.job.provision import Provisioner
from controller.job.rules import status as statuses
from controller.job.rules.counts import count, without
from controller.job.rules.kill import UNFINISHED, WHOLE, half_deleted, last_retry, outdated, pods_to_delete, targeted
from controller.job.rules.machine import STOPPED_PHASES, Effect, next_phase
from controller.job.rules.podgroup import group_key
from controller.job.rules.request import Request
from controller.job.rules.sync import decide
from controller.worker import Retry
from muster.api import names
from muster.api.batch import Job, JobStatus
from muster.api.core import Pod
from muster.api.meta import parse_time
from muster.runtime.job_volumes import claim_names

_HALF_DELETED_S = 5.0
_SYNCED = frozenset({"", "Pending", "Running"})


class Reconciler:
    """Passes over Jobs; never two at once over the same one."""

    def __init__(self, context: Context, pending_events: PendingEvents) -> None:
        self._context = context
        self._pending_events = pending_events
        self._actions = Actions(context)
        self._commands = Commands(context, self._actions)
        self._provisioner = Provisioner(context)

    def process(self, key: str) -> None:
        """One pass. What it could not deal with stays in the inbox when it raises."""
        for gone in self._pending_events.take_gone(key):
            self._context.forget(gone)
            self._actions.forget(gone)
        job = self._context.job(key)
        snapshot = JobSnapshot(self._context, job) if job and not job.metadata.deletion_timestamp else None
        requests, done = self._pending_events.take(key), list[Request]()
        try:
            if job is None or snapshot is None:
                self._commands.without_job(key, requests)
                return
            requests[:0] = self._actions.first_sight(job, snapshot)
            job = self._entered(job)
            while requests:
                request = requests[0]
                handle = self._commands.handle if request.command else self._actions.handle
                job = handle(job, request, snapshot)
                done += [request] if request.command else []
                requests.pop(0)
            job = self._actions.restart_more(self._actions.expire(job, snapshot), snapshot)
            try:
                self._work(job, snapshot.pods)
            finally:
                self._commands.delete(job.metadata.namespace, done)
        finally:
            unwritten = snapshot.targets if snapshot else ()
            self._pending_events.put_back(key, [*unwritten, *done, *requests])

    def _entered(self, job: Job) -> Job:
        """A Job without a phase becomes Pending before anything else happens to it."""
        if job.status.state.phase:
            return job
        why = statuses.queued(job.spec.queue or names.DEFAULT_QUEUE)
        status = statuses.moved(job.status, "Pending", *why, self._context.wall_s())
        return self._context.writer.write(job, structs.replace(status, min_available=job.spec.min_available))

    def _work(self, job: Job, pods: Sequence[Pod]) -> None:
        self._delete_again(job, pods)
        phase = job.status.state.phase
        if phase in _SYNCED:
            self._sync(job, pods)
        elif phase == "Restarting":
            self._restart(job, pods)
        else:
            self._stop(job, pods)
        if self._context.expectations.owes(job.metadata.uid, group_key(job)):
            self._context.requeue_after(job.metadata.key, KEPT_S + 1)

    def _delete_again(self, job: Job, pods: Sequence[Pod]) -> None:
        """Completes deletions that were cut short; most pods that look so are gone in a moment."""
        now_s = self._context.wall_s()
        for one in half_deleted(pods):
            overdue_s = now_s - (parse_time(one.metadata.deletion_timestamp) or now_s)
            if overdue_s >= _HALF_DELETED_S:
                self._delete(job, [one], "HalfDeleted", mark=False)
            self._context.requeue_after(job.metadata.key, _HALF_DELETED_S)

    def _sync(self, job: Job, pods: Sequence[Pod]) -> None:
        """Creates what is missing and deletes what is too much. What fails does not hold up the phase."""
        found = self._provisioner.prepare(job, pods)
        decision = decide(job, pods, may_create=found.may_create)
        failures = [*found.failures, *self._delete(job, decision.delete, "Surplus", mark=True)]
        if found.group:
            failures += self._provisioner.create(job, found.group, decision.create, found.plugins)
        after = self._context.pods(job) if decision.create or decision.delete else pods
        status, waiting = job.status, None
        if not found.failures:
            status = statuses.with_resources(status, job.spec.plugins, claim_names(job))
        if found.group and job.status.state.phase == "Pending":
            waiting = statuses.waiting(found.group, after)
        self._conclude(job, status, after, failures, waiting=waiting, surplus=decision.delete)

    def _restart(self, job: Job, pods: Sequence[Pod]) -> None:
        targets = statuses.restart_targets(job.status)
        kinds = {target.kind for target in targets}
        whole = not kinds or bool(kinds & {WHOLE, UNFINISHED})
        if whole:
            doomed = outdated(job, pods, keep_finished=last_retry(job) or kinds == {UNFINISHED})
        else:
            doomed = targeted(pods, targets)
        failures = self._delete(job, doomed, "Restart", mark=not whole)
        if whole and not failures:
            failures += self._provisioner.delete_group(job)
            self._context.objects.forget(job)  # they stay; what somebody else deleted is made again
        self._conclude(job, job.status, self._context.pods(job) if doomed else pods, failures)

    def _stop(self, job: Job, pods: Sequence[Pod]) -> None:
        doomed = pods_to_delete(job, pods, Effect.KILL_SOFT)
        failures = self._delete(job, doomed, job.status.state.phase, mark=False)
        after = self._context.pods(job) if doomed else pods
        status = job.status
        if not failures:
            failures += self._provisioner.delete_group(job)
            still = any(pod.metadata.deletion_timestamp for pod in after)
            if statuses.has_plugins(status) and status.state.phase in STOPPED_PHASES and not still:
                kept = self._provisioner.delete_objects(job)
                failures += kept
                status = status if kept else statuses.with_resources(status, (), claim_names(job))
        self._conclude(job, status, after, failures)

    def _delete(self, job: Job, pods: Sequence[Pod], why: str, *, mark: bool) -> list[Failure]:
        failures = self._context.effects.delete_pods(job, pods, why=why, mark=mark) if pods else []
        return [Failure("FailedDelete", failure) for failure in failures]

    def _conclude(
        self,
        job: Job,
        status: JobStatus,
        pods: Sequence[Pod],
        failures: Sequence[Failure],
        *,
        waiting: tuple[str, str] | None = None,
        surplus: Sequence[Pod] = (),
    ) -> None:
        """Counts, decides the phase and writes; raises Retry when something is left to be done.

        A phase whose work is to delete pods stays as long as that fails. The others follow from the pods that the Job
        wants: those that are too much may still be there, and decide nothing.
        """
        now_s = self._context.wall_s()
        counts, phase = count(pods), job.status.state.phase
        held = bool(failures) and phase not in _SYNCED
        wanted = count(without(pods, surplus)) if surplus else counts
        transition = None if held else next_phase(job.spec, phase, wanted, job.status.retry_count)
        if transition:
            status = statuses.moved(status, transition.phase, transition.reason, transition.message, now_s)
            status = statuses.finished_with_duration(job, status)
        elif phase in STOPPED_PHASES:
            pass  # the reason for which it ended stays; events tell the rest
        elif failures:
            status = statuses.explained(status, *summary(failures))
        elif waiting:
            status = statuses.explained(status, *waiting)
        elif status.state.reason in RECOVERABLE:
            status = statuses.explained(status, "Recovered", f"{status.state.reason} is over")
        status = self._actions.noted(job, statuses.counted(status, counts, job.spec.min_available))
        self._context.writer.write(job, status)
        if waiting and waiting[0] == "Unschedulable" and not transition and not failures:
            self._context.recorder.event(job, "Warning", "PodGroupPending", waiting[1])
        left = [failure.message for failure in failures if failure.transient]
        if left:
            raise Retry("; ".join(left))

"""One pass over a Job: handle its events, then do the work of its phase.

The two parts of a pass communicate only through the Job's status. An action writes the new phase and the targets of a
restart. The work of the new phase then deletes and creates pods. It takes place in the same pass, or later after a
failure, possibly in another process.
"""

from collections.abc import Sequence
from contextlib import suppress

import structlog
from msgspec import structs

from controller.job.actions import Actions
from controller.job.commands import CommandHandler
from controller.job.context import Context, JobSnapshot
from controller.job.expectations import KEPT_S
from controller.job.pending_events import PendingEvents
from controller.job.provision import Prepared, Provisioner
from controller.job.rules import notes, timers
from controller.job.rules import status as statuses
from controller.job.rules.done import remembered, with_done
from controller.job.rules.phases import STOPPED_PHASES, SYNCED
from controller.job.rules.policies import is_whole, pods_to_delete, restart_targets
from controller.job.rules.status import Failure, Work, concluded
from controller.job.rules.sync import decide, half_deleted, over_limits
from controller.job.rules.timers import expires_s
from controller.worker import Retry
from muster.api.grammar import and_more
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.meta import parse_time
from muster.api.volcano.batch import JOBS, Job
from muster.kube.errors import NotFound
from muster.volcano.manifests import claim_names
from muster.volcano.podgroup import group_key
from muster.volcano.tasks import job_minimum, queue_of, reference

log = structlog.get_logger(__name__)
NEEDED_S = 60.0
"""Maximum delay of the deletion of an expired Job, in seconds, so that the creator of the Job can record the Job's
end."""
_HALF_DELETED_S = 5.0


class Reconciler:
    """The runner of passes over Jobs; no two passes over the same Job run at once."""

    def __init__(self, context: Context, pending_events: PendingEvents) -> None:
        self._context = context
        self._pending_events = pending_events
        self._actions = Actions(context)
        self._commands = CommandHandler(context, self._actions)
        self._provisioner = Provisioner(context)
        self._reported: dict[str, str] = {}
        """Maps the UID of a Job to the kind of obstacle in its last Event. A restarted controller has an empty map, and
        records the Event about a persisting obstacle once more."""

    def process(self, key: str) -> None:
        """Run one pass over the Job. Unhandled events stay pending, even if the pass raises.

        A pass reads the pods before it takes the pending events, so an event about each missing pod has already
        arrived. The phase is written before its work begins, and Commands are deleted last, so that another process can
        continue after a crash.
        """
        for gone in self._pending_events.take_gone(key):
            self._context.forget(gone)
            self._actions.forget(gone)
            self._reported.pop(gone.metadata.uid, None)
        job = self._context.job(key)
        if job is None or job.metadata.deletion_timestamp:
            with self._pending_events.batch(key) as batch:
                self._commands.without_job(key, batch)
            return
        if self._expired(job):
            return
        snapshot = JobSnapshot(self._context, job)
        with self._pending_events.batch(key, unwritten=snapshot.targets) as batch:
            batch.add_first(self._actions.first_sight(job, snapshot))
            job = self._entered(job)
            for request in batch:
                handle = self._commands.handle if request.command else self._actions.handle
                job = handle(job, request, snapshot)
            job = self._actions.expire(job, snapshot)
            job = self._actions.restart_more(job, snapshot)
            with self._commands.deleted_at_the_end(job, batch):
                self._work(job, with_done(job, snapshot.pods))

    def _expired(self, job: Job) -> bool:
        """Delete a Job, after its pods, once `ttlSecondsAfterFinished` has passed; until then, request a later pass."""
        due_s = expires_s(job)
        if due_s is None:
            return False
        left_s, meta = due_s - self._context.wall_s(), job.metadata
        if left_s > 0:
            self._context.requeue_after(meta.key, left_s)
            return False
        if left_s > -NEEDED_S and self._context.needed(job):
            self._context.requeue_after(meta.key, 1.0)
            return False
        log.info("job deleted, because its ttlSecondsAfterFinished has passed", job=meta.key)
        client, version = self._context.client, meta.resource_version
        with suppress(NotFound):
            client.delete(
                JOBS, meta.name, meta.namespace, uid=meta.uid, resource_version=version, propagation="Foreground"
            )
        return True

    def _entered(self, job: Job) -> Job:
        """Write the phase Pending into a Job without a phase, which exists if the CRD has no default for the phase."""
        if job.status.state.phase:
            return job
        why = statuses.queued(queue_of(job.spec))
        status = statuses.moved(job.status, "Pending", *why, self._context.wall_s())
        return self._context.writer.write(job, structs.replace(status, min_available=job_minimum(job.spec)))

    def _work(self, job: Job, pods: Sequence[Pod]) -> None:
        """Do the work of the Job's phase, and write the resulting status."""
        self._complete_deletions(job, pods)
        phase = job.status.state.phase
        work = self._sync if phase in SYNCED else self._restart if phase == "Restarting" else self._stop
        self._conclude(job, work(job, pods))
        if not self._context.expectations.satisfied(reference(job), group_key(job)):
            # An object that was created and deleted between two lists of a reflector causes no event.
            self._context.requeue_after(job.metadata.key, KEPT_S + 1)

    def _complete_deletions(self, job: Job, pods: Sequence[Pod]) -> None:
        """Complete interrupted deletions of pods; wait a few seconds first, because most such pods soon disappear."""
        now_s = self._context.wall_s()
        for one in half_deleted(pods):
            overdue_s = now_s - (parse_time(one.metadata.deletion_timestamp) or now_s)
            if overdue_s >= _HALF_DELETED_S:
                self._delete(job, [one], "HalfDeleted", mark=False)
            self._context.requeue_after(job.metadata.key, _HALF_DELETED_S)

    def _sync(self, job: Job, pods: Sequence[Pod]) -> Work:
        """Create missing pods and delete surplus pods. The Job can enter the next phase even if some calls fail."""
        over = over_limits(job)
        if over is not None:
            self._context.recorder.event(job, "Warning", over.reason, over.message)
            return Work(job.status, pods, [over])
        delay_s = timers.left_s(job.status, self._context.wall_s())  # after the kubelet has rejected pods
        if delay_s:
            self._context.requeue_after(job.metadata.key, delay_s)
        if delay_s and self._context.groups.find(job) is None:
            found = Prepared((), None, [])  # a new PodGroup would hold its nodes while pods are delayed
        else:
            found = self._provisioner.prepare(job, pods)
        decision = decide(job, pods, may_create=found.may_create and not delay_s)
        failures = [*found.failures, *self._delete(job, decision.delete, "Surplus", mark=True)]
        if found.group:
            failures += self._provisioner.create(job, found.group, pods, decision.create, found.plugins)
        after = self._context.pods(job) if decision.create or decision.delete else pods
        status, waiting = job.status, None
        if not found.failures and found.group:
            status = notes.with_resources(status, job.spec.plugins, claim_names(job))
        if delay_s and (delayed := timers.back_off(status)):
            waiting = delayed.words
        elif found.group and job.status.state.phase == "Pending":
            waiting = statuses.waiting(found.group, after)
        kind = statuses.obstacle(found.group) if found.group else ""
        return Work(status, after, failures, waiting, decision.delete, kind)

    def _restart(self, job: Job, pods: Sequence[Pod]) -> Work:
        """Delete the pods of the recorded restart targets; if the whole Job restarts, also delete its PodGroup.

        The PodGroup is kept if the planner has evicted members and holds nodes for their replacements (a repair or a
        move). Objects of plugins are kept, so that new pods find the same names and keys; the next pass checks these
        objects again.
        """
        whole = is_whole(restart_targets(job.status))
        to_delete = pods_to_delete(job, pods)
        failures = self._delete(job, to_delete, "Restart", mark=not whole)
        if whole and not failures:
            failures += self._provisioner.restart_group(job)
            self._context.objects.forget(job)
        return Work(job.status, self._context.pods(job) if to_delete else pods, failures)

    def _stop(self, job: Job, pods: Sequence[Pod]) -> Work:
        """Delete the unfinished pods, then the PodGroup, then the objects of plugins, which ended Jobs do not need."""
        to_delete = pods_to_delete(job, pods)
        failures = self._delete(job, to_delete, job.status.state.phase, mark=False)
        after = self._context.pods(job) if to_delete else pods
        status = job.status
        if not failures:
            failures += self._provisioner.delete_group(job)
            still = any(pod.metadata.deletion_timestamp for pod in after)
            if notes.has_plugins(status) and status.state.phase in STOPPED_PHASES and not still:
                kept = self._provisioner.delete_objects(job)
                failures += kept
                status = status if kept else notes.with_resources(status, (), claim_names(job))
        return Work(status, after, failures)

    def _delete(self, job: Job, pods: Sequence[Pod], why: str, *, mark: bool) -> list[Failure]:
        failures = self._context.effects.delete_pods(job, pods, why=why, mark=mark) if pods else []
        return [Failure("FailedDelete", failure) for failure in failures]

    def _conclude(self, job: Job, work: Work) -> None:
        """Write the status that results from the work; raise Retry after a transient failure."""
        status, unschedulable = concluded(job, work, self._context.wall_s())
        status = remembered(job, self._actions.noted(job, status), work.pods)
        self._context.writer.write(job, status)
        self._report_obstacle(job, unschedulable, work.obstacle)
        left = [failure.message for failure in work.failures if failure.transient]
        if left:
            raise Retry(and_more(left[0], len(left)))

    def _report_obstacle(self, job: Job, why: str | None, kind: str) -> None:
        """Record an Event about the obstacle to the gang's placement, once per kind of obstacle.

        Messages are not compared: they contain numbers, which change whenever another gang moves.
        """
        if why is None:
            self._reported.pop(job.metadata.uid, None)
        elif self._reported.get(job.metadata.uid) != kind:
            self._reported[job.metadata.uid] = kind
            self._context.recorder.event(job, "Warning", "PodGroupPending", why)

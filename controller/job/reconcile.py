"""One pass over a Job: deal with what happened to it, then do the work of the phase that it is in."""

from collections.abc import Sequence
from contextlib import suppress

from msgspec import structs

from controller.job import status as statuses
from controller.job.actions import Actions
from controller.job.commands import Commands
from controller.job.context import Context
from controller.job.counts import count
from controller.job.inbox import Inbox
from controller.job.kill import UNFINISHED, WHOLE, half_deleted, last_retry, outdated, targeted, victims
from controller.job.ledger import KEPT_S
from controller.job.machine import Effect, settle
from controller.job.podgroup import group_name
from controller.job.pods import pod, seated
from controller.job.sync import Seat, decide
from controller.job.volumes import claim_names, mount
from controller.plugins.base import Plugin, PluginError
from controller.plugins.registry import plugins_for
from controller.worker import Retry
from muster.api import names
from muster.api.batch import Job, JobStatus
from muster.api.core import Pod
from muster.api.meta import parse_time
from muster.api.scheduling import PodGroup
from muster.kube.errors import APIError

_HALF_DELETED_S = 5.0
_LIVE = frozenset({"", "Pending", "Running"})
_TROUBLES = frozenset({"FailedCreate", "FailedDelete", "PluginError", "PodGroupError", "ObjectError"})


class Reconciler:
    """Passes over Jobs; never two at once over the same one."""

    def __init__(self, context: Context, inbox: Inbox) -> None:
        self._context = context
        self._inbox = inbox
        self._actions = Actions(context)
        self._commands = Commands(context, self._actions)

    def process(self, key: str) -> None:
        """One pass. What it could not deal with stays in the inbox when it raises."""
        requests = self._inbox.take(key)
        try:
            job = self._context.job(key)
            if job is None or job.metadata.deletion_timestamp:
                self._commands.without_job(key, requests)
                return
            requests[:0] = self._actions.first_sight(job)
            job = self._entered(job)
            while requests:
                request = requests[0]
                handle = self._commands.handle if request.command else self._actions.handle
                job = handle(job, request)
                requests.pop(0)
            self._work(self._actions.expire(job))
        finally:
            self._inbox.put_back(key, requests)

    def forget(self, job: Job) -> None:
        """The Job is gone."""
        self._context.forget(job)
        self._actions.forget(job)

    def _entered(self, job: Job) -> Job:
        """A Job without a phase becomes Pending before anything else happens to it."""
        if job.status.state.phase:
            return job
        why = statuses.queued(job.spec.queue or names.DEFAULT_QUEUE)
        status = statuses.moved(job.status, "Pending", *why, self._context.now_s())
        return self._context.writer.write(job, structs.replace(status, min_available=job.spec.min_available))

    def _work(self, job: Job) -> None:
        self._delete_again(job)
        phase = job.status.state.phase
        if phase in _LIVE:
            self._sync(job)
        elif phase == "Restarting":
            self._restart(job)
        else:
            self._stop(job)
        if self._context.ledger.owes(job.metadata.uid, f"{job.metadata.namespace}/{group_name(job)}"):
            self._context.again(job.metadata.key, KEPT_S + 1)

    def _delete_again(self, job: Job) -> None:
        """Completes deletions that were cut short; most pods that look so are gone in a moment."""
        now_s = self._context.now_s()
        for one in half_deleted(self._context.pods(job)):
            overdue_s = now_s - (parse_time(one.metadata.deletion_timestamp) or now_s)
            if overdue_s >= _HALF_DELETED_S:
                self._delete(job, [one], "HalfDeleted", mark=False)
            self._context.again(job.metadata.key, _HALF_DELETED_S)

    def _sync(self, job: Job) -> None:
        context = self._context
        try:
            plugins = plugins_for(job.spec.plugins)
            pods = context.pods(job)
            context.objects.ensure(job, plugins)
            group = context.groups.ensure(job, pods)
        except PluginError as error:
            # Plugins of a Job cannot be changed: trying again would not help.
            self._explain(job, "PluginError", str(error))
            return
        except (Retry, APIError, ValueError) as error:
            self._explain(job, "PodGroupError" if isinstance(error, ValueError) else "ObjectError", str(error))
            raise Retry(str(error)) from error
        decision = decide(job, pods, may_create=group.status.phase not in {"", "Pending"})
        troubles = [("FailedDelete", why) for why in self._delete(job, decision.delete, "Surplus", mark=True)]
        troubles += [("FailedCreate", why) for why in self._create(job, group, decision.create, plugins)]
        status = statuses.with_resources(job.status, job.spec.plugins, claim_names(job))
        waiting = statuses.waiting(group, context.pods(job)) if job.status.state.phase == "Pending" else None
        self._conclude(job, status, troubles, waiting)

    def _create(self, job: Job, group: PodGroup, seats: Sequence[Seat], plugins: Sequence[Plugin]) -> list[str]:
        if not seats:
            return []
        placement = self._context.groups.placement(group)
        manifests = []
        for seat in seats:
            manifest = pod(job, seat)
            mount(job, manifest)
            try:
                for plugin in plugins:
                    plugin.shape(job, seat, manifest)
            except PluginError as error:
                return [str(error)]
            manifests.append(seated(manifest, seat, placement))
        return self._context.effects.create_pods(job, manifests)

    def _restart(self, job: Job) -> None:
        pods, targets = self._context.pods(job), statuses.restart_targets(job.status)
        kinds = {target.kind for target in targets}
        whole = not kinds or bool(kinds & {WHOLE, UNFINISHED})
        if whole:
            doomed = outdated(job, pods, keep_finished=last_retry(job) or kinds == {UNFINISHED})
        else:
            doomed = targeted(pods, targets)
        failures = self._delete(job, doomed, "Restart", mark=not whole)
        if whole and not failures:
            self._context.groups.delete(job)
        self._conclude(job, job.status, [("FailedDelete", why) for why in failures])

    def _stop(self, job: Job) -> None:
        doomed = victims(job, self._context.pods(job), Effect.KILL_SOFT, statuses.NO_TARGET)
        failures = self._delete(job, doomed, job.status.state.phase, mark=False)
        status = job.status
        if not failures:
            self._context.groups.delete(job)
            if statuses.has_plugins(status) and status.state.phase in statuses.STOPPED:
                with suppress(PluginError):  # a plugin was uninstalled meanwhile; its objects go with the Job
                    self._context.objects.delete(job, plugins_for(job.spec.plugins))
                status = statuses.with_resources(status, (), claim_names(job))
        self._conclude(job, status, [("FailedDelete", why) for why in failures])

    def _delete(self, job: Job, pods: Sequence[Pod], why: str, *, mark: bool) -> list[str]:
        return self._context.effects.delete_pods(job, pods, why=why, mark=mark) if pods else []

    def _conclude(
        self,
        job: Job,
        status: JobStatus,
        troubles: Sequence[tuple[str, str]],
        waiting: tuple[str, str] | None = None,
    ) -> None:
        """Counts, settles the phase and writes; raises Retry when something is left to be done."""
        now_s = self._context.now_s()
        counts = count(self._context.pods(job))
        outcome = None if troubles else settle(job.spec, job.status.state.phase, counts, job.status.retry_count)
        if outcome:
            status = statuses.moved(status, outcome.phase, outcome.reason, outcome.message, now_s)
            status = statuses.finished_with_duration(job, status)
        elif troubles:
            status = statuses.explained(status, *statuses.summary(troubles))
        elif waiting:
            status = statuses.explained(status, *waiting)
        elif status.state.reason in _TROUBLES:
            status = statuses.explained(status, "Recovered", f"{status.state.reason} is over")
        status = self._actions.noted(job, statuses.counted(status, counts, job.spec.min_available))
        self._context.writer.write(job, status)
        if waiting and waiting[0] == "Unschedulable" and not outcome:
            self._context.recorder.event(job, "Warning", "PodGroupPending", waiting[1])
        if troubles:
            raise Retry("; ".join(why for _, why in troubles))

    def _explain(self, job: Job, reason: str, message: str) -> None:
        """Tells the user why nothing happens."""
        self._context.recorder.event(job, "Warning", reason, message)
        self._context.writer.write(job, statuses.explained(job.status, reason, message))

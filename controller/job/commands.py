"""Execution and deletion of Commands, which request actions on Jobs."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from controller.job.actions import Actions
from controller.job.context import Context, JobSnapshot
from controller.job.pending_events import Batch
from controller.job.rules import events, notes, policies
from controller.job.rules.events import JobEvent
from controller.job.rules.policies import PolicyAction
from controller.live import delete, get_or_none
from controller.worker import Retry
from muster.api.kubernetes.meta import Object, ObjectMeta
from muster.api.volcano.batch import COMMANDS, JOBS, Job
from muster.api.volcano.scheduling import QUEUES

KNOWN = tuple(action for action in PolicyAction if action not in policies.TARGETED)
"""Actions that a Command may name: all except actions on a part of a Job, because a Command cannot name a part."""
NO_TARGET = f"its target must be a {JOBS.kind} of {JOBS.group}, or a {QUEUES.kind} of {QUEUES.group}"


def _meta(namespace: str, request: JobEvent) -> ObjectMeta:
    """Return the metadata of the Command that caused a request."""
    return ObjectMeta(name=request.command, namespace=namespace, uid=request.command_uid)


class CommandHandler:
    """Execution and deletion of Commands."""

    def __init__(self, context: Context, actions: Actions) -> None:
        self._context = context
        self._actions = actions

    def handle(self, job: Job, request: JobEvent, snapshot: JobSnapshot) -> Job:
        """Execute a Command, which is deleted at the end of the pass; return the Job."""
        event = self._context.recorder.event
        if request.job_uid and request.job_uid != job.metadata.uid:
            if self._uid(job.metadata.namespace, job.metadata.name) == request.job_uid:
                raise Retry(f"the target Job of Command {request.command} is not in the cache yet")
            why = f"Command {request.command} is for an earlier Job of this name (UID {request.job_uid}); it is dropped"
            event(job, "Warning", "CommandIssued", why)
        elif request.action not in KNOWN:
            why = f"Command {request.command}: unknown action {request.action!r}; valid actions are {', '.join(KNOWN)}"
            event(job, "Warning", "CommandIssued", why)
        else:
            event(job, "Normal", "CommandIssued", f"Command {request.command} asks for {request.action}")
            if request.command_uid not in notes.words(job.status, notes.COMMANDS):  # it is new
                job = self._actions.carry_out(job, request.action, request, snapshot)
        return job

    def without_job(self, key: str, batch: Batch) -> None:
        """Drop each Command whose target is not a Job or was deleted, and record an Event for the Command.

        Raise Retry if the target Job exists but is not in the cache yet.
        """
        namespace, _, name = key.partition("/")
        if name and batch.commands() and self._uid(namespace, name):
            raise Retry(f"Job {key} is not in the cache yet")
        why = f"there is no Job {name} in namespace {namespace}" if name else NO_TARGET
        for request in batch.commands():
            command = Object(api_version=COMMANDS.api_version, kind=COMMANDS.kind, metadata=_meta(namespace, request))
            self._context.recorder.event(command, "Warning", events.COMMAND_ISSUED, why)
        self._delete(namespace, batch.commands())
        batch.drop()

    @contextmanager
    def deleted_at_the_end(self, job: Job, batch: Batch) -> Iterator[None]:
        """At the end of the `with` block, even after an exception, delete the Commands that this pass has executed."""
        try:
            yield
        finally:
            self._delete(job.metadata.namespace, batch.carried_out())

    def _delete(self, namespace: str, requests: Iterable[JobEvent]) -> None:
        for request in requests:
            delete(self._context.client, COMMANDS, _meta(namespace, request))

    def _uid(self, namespace: str, name: str) -> str:
        """Return the UID of a Job, read from the API server; "" if the Job does not exist or is being deleted."""
        found = get_or_none(self._context.client, JOBS, name, namespace)
        return found.metadata.uid if found and not found.metadata.deletion_timestamp else ""

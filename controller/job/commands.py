"""Commands to Jobs: suspend, resume, restart and so on.

A Command is carried out at least once and deleted after that, and its UID is noted in the Job's status by the same
write that enters the phase, so it is not carried out a second time when this process dies before the deletion.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from controller.job.actions import Actions
from controller.job.context import Context, JobSnapshot
from controller.job.pending_events import Batch
from controller.job.rules.events import Request
from controller.job.rules.policies import TARGETED, Action
from controller.live import delete, find
from controller.worker import Retry
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.volcano.batch import COMMANDS, JOBS, Job

KNOWN = tuple(action for action in Action if action not in TARGETED)
"""Actions of Commands: those on a part of a Job need an event that names the part."""


class Commands:
    """Carries out Commands and deletes them."""

    def __init__(self, context: Context, actions: Actions) -> None:
        self._context = context
        self._actions = actions

    def handle(self, job: Job, request: Request, snapshot: JobSnapshot) -> Job:
        """The Job after the Command, which is to be deleted at the end of the pass."""
        event = self._context.recorder.event
        if request.job_uid and request.job_uid != job.metadata.uid:
            if self._uid(job.metadata.namespace, job.metadata.name) == request.job_uid:
                raise Retry(f"the Job that Command {request.command} is for is too new to be known here")
            why = f"Command {request.command} is for an earlier Job of this name (UID {request.job_uid}); it is dropped"
            event(job, "Warning", "CommandIssued", why)
        elif request.action not in KNOWN:
            why = f"Command {request.command}: unknown action {request.action!r}; known are {', '.join(KNOWN)}"
            event(job, "Warning", "CommandIssued", why)
        else:
            event(job, "Normal", "CommandIssued", f"Command {request.command} asks for {request.action}")
            job = self._actions.carry_out_command(job, request, snapshot)
        return job

    def without_job(self, key: str, batch: Batch) -> None:
        """Drops the Commands to a Job that is gone; raises Retry if it exists and only the cache does not know it."""
        namespace, _, name = key.partition("/")
        if batch.commands() and self._uid(namespace, name):
            raise Retry(f"Job {key} is too new to be known here")
        self._delete(namespace, batch.commands())
        batch.drop()

    @contextmanager
    def deleted_at_the_end(self, job: Job, batch: Batch) -> Iterator[None]:
        """Deletes the Commands that this pass has carried out once its work is done, also when the work raises.

        Work that raises is tried again without them: it follows from the phase that a Command has led to.
        """
        try:
            yield
        finally:
            self._delete(job.metadata.namespace, batch.carried_out())

    def _delete(self, namespace: str, requests: Iterable[Request]) -> None:
        for request in requests:
            meta = ObjectMeta(name=request.command, namespace=namespace, uid=request.command_uid)
            delete(self._context.client, COMMANDS, meta)

    def _uid(self, namespace: str, name: str) -> str:
        """The UID of the Job of this name at the API server; "" if there is none, or it is being deleted."""
        found = find(self._context.client, JOBS, name, namespace)
        return found.metadata.uid if found and not found.metadata.deletion_timestamp else ""

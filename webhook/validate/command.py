"""Validation of Commands: the sender needs the right to change the target.

The controller executes Commands with its own rights and does not know who created a Command; only admission knows the
creator. Queues are cluster-wide, so the right to create Commands in a namespace must not be enough to control queues. A
target Job is always in the Command's own namespace.
"""

from http import HTTPStatus

from muster.api.fields import FieldError
from muster.api.kubernetes import admission, meta, reviews
from muster.api.names import CLOSE_QUEUE, ROOT_QUEUE
from muster.api.volcano import batch, scheduling
from webhook.apiserver import Rights
from webhook.review import Handler, ReviewVerdict, decode

_VERB = "update"


def reviewer(rights: Rights | None) -> Handler:
    """Return the handler for Commands; it checks new Commands, and changes of the action or target.

    Without `rights`, as offline, every Command is admitted.
    """

    def review(request: admission.AdmissionRequest) -> ReviewVerdict:
        command = decode(request.object, batch.Command)
        action = _action(command.target, request.namespace)
        if rights is None or action is None or (request.operation == "UPDATE" and _same(request, command)):
            return ReviewVerdict()
        if rights.allows(request.user_info, action):
            return ReviewVerdict(errors=_impossible(command))
        return ReviewVerdict(errors=[_refusal(request.user_info, command.action, action)], refusal=HTTPStatus.FORBIDDEN)

    return review


def _impossible(command: batch.Command) -> list[FieldError]:
    """Refuse Commands that the controller could not carry out.

    The controller could report the failure of such a Command only in an Event, which few users read.
    """
    target = command.target
    if target and scheduling.is_queue(target) and target.name == ROOT_QUEUE and command.action == CLOSE_QUEUE:
        return [FieldError("target.name", "the root queue cannot be closed: close the queues below it", target.name)]
    return []


def _same(request: admission.AdmissionRequest, command: batch.Command) -> bool:
    """Return True if an update changes only metadata.

    An update of metadata is admitted, so that Commands can always be deleted.
    """
    old = decode(request.old_object, batch.Command)
    return (old.action, old.target) == (command.action, command.target)


def _action(target: meta.OwnerReference | None, namespace: str) -> reviews.ResourceAttributes | None:
    """Return the API request for which the user needs a right.

    Return None if Muster's controller does not act on the target.
    """
    if target is None:
        return None
    if scheduling.is_queue(target):
        return reviews.ResourceAttributes(
            verb=_VERB, group=scheduling.QUEUES.group, resource=scheduling.QUEUES.plural, name=target.name
        )
    if batch.is_job(target):
        return reviews.ResourceAttributes(
            verb=_VERB, group=batch.JOBS.group, resource=batch.JOBS.plural, namespace=namespace, name=target.name
        )
    return None


def _refusal(user: admission.UserInfo, command: str, action: reviews.ResourceAttributes) -> FieldError:
    target = f"{action.resource}.{action.group}/{action.name}"
    there = f" -n {action.namespace}" if action.namespace else ""
    message = (
        f"user {user.username!r} is not allowed to send {command or 'a Command'} to {target}, because this requires "
        f"the right to {action.verb} it; ask an administrator, "
        f"and see `kubectl auth can-i {action.verb} {target}{there}`"
    )
    return FieldError("target", message, reason="Forbidden")

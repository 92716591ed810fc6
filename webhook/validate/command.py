"""A Command: who sends one may change its target himself.

The controller carries Commands out with its own rights, and cannot know who has made them: here is the only place where
that is known. A queue belongs to no namespace, so the right to make Commands somewhere says nothing about it; a Job is
one of the Command's own namespace.
"""

from http import HTTPStatus

from msgspec.json import Decoder

from muster.api.fields import FieldError
from muster.api.kubernetes.admission import AdmissionRequest, UserInfo
from muster.api.kubernetes.authorization import ResourceAttributes
from muster.api.kubernetes.meta import OwnerReference
from muster.api.volcano.batch import JOBS, is_job
from muster.api.volcano.bus import Command
from muster.api.volcano.scheduling import QUEUES
from webhook.review import Handler, Verdict, decode
from webhook.rights import Rights

_COMMAND = Decoder(Command)
_VERB = "update"


def reviewer(rights: Rights | None) -> Handler:
    """The handler for Commands, on CREATE, and on UPDATE where the Command becomes another one.

    Without `rights` (no API server) nobody is asked.
    """

    def review(request: AdmissionRequest) -> Verdict:
        command = decode(request.object, _COMMAND)
        action = _action(command.target, request.namespace)
        if rights is None or action is None or (request.operation == "UPDATE" and _same(request, command)):
            return Verdict()
        if rights.allows(request.user_info, action):
            return Verdict()
        return Verdict(errors=[_refusal(request.user_info, command.action, action)], refusal=HTTPStatus.FORBIDDEN)

    return review


def _same(request: AdmissionRequest, command: Command) -> bool:
    """Whether nothing has changed but what the API server keeps about it: a Command must be able to go away."""
    old = decode(request.old_object, _COMMAND)
    return (old.action, old.target) == (command.action, command.target)


def _action(target: OwnerReference | None, namespace: str) -> ResourceAttributes | None:
    """What the user would do himself; None where no controller of ours acts on such a target."""
    if target is None:
        return None
    if target.kind == QUEUES.kind and target.api_version.startswith(f"{QUEUES.group}/"):
        return ResourceAttributes(verb=_VERB, group=QUEUES.group, resource=QUEUES.plural, name=target.name)
    if is_job(target):
        return ResourceAttributes(
            verb=_VERB, group=JOBS.group, resource=JOBS.plural, namespace=namespace, name=target.name
        )
    return None


def _refusal(user: UserInfo, command: str, action: ResourceAttributes) -> FieldError:
    what = f"{action.resource}.{action.group}/{action.name}"
    there = f" -n {action.namespace}" if action.namespace else ""
    message = (
        f"user {user.username!r} may not send {command or 'a Command'} to {what}, as that takes the right to "
        f"{action.verb} it; ask an administrator, and see `kubectl auth can-i {action.verb} {what}{there}`"
    )
    return FieldError("target", message, reason="Forbidden")

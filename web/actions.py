"""Actions of the web page: suspend, resume and delete Jobs and TrainJobs.

The page acts with the user's own token and rights, never with the server's. The user confirms each action first. An
action affects only the confirmed object, never a newer object of the same name.
"""

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from starlette.responses import RedirectResponse, Response

from gangs.row import GangRow
from muster.api.base import Resource
from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.kubernetes.reviews import ResourceAttributes
from muster.api.muster.states import ENDED
from muster.api.volcano.batch import COMMANDS, JOBS, command_to
from muster.kube.client import Client
from web.context import RequestContext
from web.rights import listing

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
Does = Callable[[Client, str, str, str], object]
"""Type of the functions that carry out an action; the arguments are client, namespace, name and UID."""


class PageAction(NamedTuple):
    """An action that the page offers for workloads of one kind."""

    name: str
    resource: Resource[Any]
    needs: tuple[tuple[str, Resource[Any]], ...]
    """Verb and kind of each right that the action needs."""
    text: str
    """Text that describes the effect of the action to the user who confirms the action."""
    does: Does

    @property
    def title(self) -> str:
        """The label of the action's button."""
        return self.name.capitalize()

    def path(self, namespace: str, name: str) -> str:
        """Return the path of the action's confirmation page."""
        return f"/act/{self.name}/{self.resource.plural}/{namespace}/{name}"


def _command(action: str) -> Does:
    def send(client: Client, namespace: str, name: str, uid: str) -> None:
        client.create(COMMANDS, command_to(JOBS, name, uid, action), namespace, strict=True)

    return send


def _suspend(*, suspend: bool) -> Does:
    def change(client: Client, namespace: str, name: str, uid: str) -> None:
        client.merge_patch(TRAIN_JOBS, name, {"metadata": {"uid": uid}, "spec": {"suspend": suspend}}, namespace)

    return change


def _delete(resource: Resource[Any]) -> Does:
    def delete(client: Client, namespace: str, name: str, uid: str) -> None:
        client.delete(resource, name, namespace, uid=uid, propagation="Background")

    return delete


_COMMANDING: Final = (("create", COMMANDS), ("update", JOBS))
_STOPS: Final = "Its pods are deleted, and other gangs can use its nodes; it can be resumed."
_STARTS: Final = "The workload waits in its queue again, and restarts, from its last checkpoint if it has one."
_ENDS: Final = "The workload is deleted with its pods and all objects that were created for it. This cannot be undone."
ACTIONS: Final = (
    PageAction("suspend", JOBS, _COMMANDING, _STOPS, _command("AbortJob")),
    PageAction("resume", JOBS, _COMMANDING, _STARTS, _command("ResumeJob")),
    PageAction("delete", JOBS, (("delete", JOBS),), _ENDS, _delete(JOBS)),
    PageAction("suspend", TRAIN_JOBS, (("patch", TRAIN_JOBS),), _STOPS, _suspend(suspend=True)),
    PageAction("resume", TRAIN_JOBS, (("patch", TRAIN_JOBS),), _STARTS, _suspend(suspend=False)),
    PageAction("delete", TRAIN_JOBS, (("delete", TRAIN_JOBS),), _ENDS, _delete(TRAIN_JOBS)),
)


def actions_for(context: RequestContext, row: GangRow) -> list[PageAction]:
    """Return the actions that the caller may take on a gang now."""
    useful = {"delete"} | (set() if row.state in ENDED else {"resume" if row.state == "Suspended" else "suspend"})
    return [
        action
        for action in ACTIONS
        if row.reference == f"{action.resource.kind.lower()}.{action.resource.group}/{row.name}"
        and action.name in useful
        and _may(context, action, row.namespace)
    ]


def confirm(context: RequestContext) -> Response:
    """Return the page on which the user confirms an action on the current object."""
    action, namespace, name = _meant(context)
    with context.client() as client:
        uid = client.get(action.resource, name, namespace).metadata.uid
    return context.page("confirm.html", action=action, namespace=namespace, name=name, uid=uid)


def act(context: RequestContext) -> Response:
    """Carry out the action, and redirect to the list of the namespace's gangs."""
    action, namespace, name = _meant(context)
    uid = context.form.get("uid", "")
    if not uid:
        raise context.refused("this form has no UID: open the page of the gang, and try again from there")
    with context.client() as client:
        action.does(client, namespace, name, uid)
    return RedirectResponse(f"/gangs?namespace={namespace}", 303)


def _meant(context: RequestContext) -> tuple[PageAction, str, str]:
    """Return the action and its object.

    Raises HTTPException 404 if there is no such object, and 403 if the user lacks the right.
    """
    called, kind, namespace, name = (context.path[each] for each in ("action", "kind", "namespace", "name"))
    found = [each for each in ACTIONS if (each.name, each.resource.plural) == (called, kind)]
    if not found or not _NAME.fullmatch(name) or not context.caller.scope.has(namespace):
        raise context.missing(f"{kind} {namespace}/{name}")
    action = found[0]
    if not _may(context, action, namespace):
        rights = " and ".join(f"{verb} {kind.full_name}" for verb, kind in action.needs)
        raise context.forbidden(f"to {action.name} it you need the right to {rights} in namespace {namespace}")
    return action, namespace, name


def _may(context: RequestContext, action: PageAction, namespace: str) -> bool:
    def allowed(verb: str, resource: Resource[Any]) -> bool:
        right: ResourceAttributes = listing(resource, namespace, verb)
        return context.may(right)

    return all(allowed(verb, resource) for verb, resource in action.needs)

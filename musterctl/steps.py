"""Execution of the steps of a verb (`muster.workloads.verbs`) at an API server, first as a dry run."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import click
import msgspec

from muster.api import names
from muster.api.kubernetes.meta import Object
from muster.api.volcano.batch import COMMANDS, command_to
from muster.api.volcano.scheduling import POD_GROUPS, PodGroup
from muster.kube.client import Client
from muster.kube.errors import APIError, Refused
from muster.workloads.kind import WorkloadKind
from muster.workloads.sample import JSON
from muster.workloads.table import MAKERS, row_of
from muster.workloads.verbs import Step
from musterctl.cluster import Failed, failing_as, may_list, whole

STOP_S = 120.0
"""Maximum time to wait for the end of a held workload's pods."""
_POLL_S = 1.2
"""Interval between checks of the pods, in seconds; longer than the time for which admission caches the size of a
workload."""
_FIXED = "FieldValueForbidden"
"""Reason in the API server's rejection of a new size of a workload that has pods."""


class Target(NamedTuple):
    """A workload, as read from the API server."""

    kind: WorkloadKind
    workload: JSON

    @property
    def name(self) -> str:
        """The workload's name."""
        return str(self.workload["metadata"]["name"])

    @property
    def title(self) -> str:
        """The workload's kind and name in kubectl's format."""
        return self.kind.resource.reference(self.name)

    @property
    def owner(self) -> str:
        """The controlling workload, to which verbs must be applied instead; "" without a controlling workload."""
        above = msgspec.convert(self.workload, Object).metadata.controller
        row = row_of(above)
        return row.resource.reference(above.name) if above and row and above.kind not in MAKERS else ""


@dataclass
class Acting:
    """The cluster in which verbs are carried out, and the options of their commands."""

    client: Client
    namespace: str
    dry_run: bool = False
    output: str = "text"

    @cached_property
    def groups(self) -> list[PodGroup] | None:
        """The PodGroups of the namespace, which are listed once; None if the user is not allowed to list PodGroups."""
        return may_list(self.client, POD_GROUPS, self.namespace)

    def forget_groups(self) -> None:
        """Drop the list of PodGroups, so that PodGroups are listed again at the next use."""
        self.__dict__.pop("groups", None)


def try_steps(acting: Acting, target: Target, steps: Sequence[Step], groups: Sequence[PodGroup]) -> JSON | None:
    """Send the steps as dry runs; return the object that the steps before the wait for its pods would produce.

    A refusal of a step after the wait is ignored if its reason is that pods still exist. Any other refusal is an error.
    """
    held, result = False, None
    for step in steps:
        held = held or step.does == "stopped"
        if not held:
            result = _take(acting, target, step, groups, dry_run=True) or result
        elif step.does == "patch":
            try:
                _take(acting, target, step, groups, dry_run=True)
            except Failed as error:
                if not _only_fixed(error.__cause__):
                    raise
    return result


def _only_fixed(error: BaseException | None) -> bool:
    causes = (error.details or {}).get("causes") or [] if isinstance(error, APIError) else []
    return bool(causes) and all(each.get("reason") == _FIXED for each in causes)


def _of_own_annotation(error: APIError) -> str:
    """Return the reason for a refusal if all refused fields are annotations that a verb writes; otherwise ""."""
    causes = (error.details or {}).get("causes") or []
    own = all(str(each.get("field")).startswith(f"metadata.annotations[{names.DOMAIN}/") for each in causes)
    return "; ".join(str(each.get("message")).removeprefix("Forbidden: ") for each in causes) if own else ""


def take_steps(acting: Acting, target: Target, steps: Sequence[Step], groups: Sequence[PodGroup]) -> JSON | None:
    """Carry out the steps; return the resulting object.

    If the steps fail while the workload is held, print a message about how to release the workload.
    """
    held, done, result = False, False, None
    try:
        for step in steps:
            held = held or step.does == "stopped"
            result = _take(acting, target, step, groups, dry_run=False) or result
        done = True
    finally:
        if held:
            acting.forget_groups()  # other gangs may have started in the meantime
        if held and not done:
            click.echo(f"{target.title} is held: muster release {target.title} returns it to its queue", err=True)
    return result


def _take(acting: Acting, target: Target, step: Step, groups: Sequence[PodGroup], *, dry_run: bool) -> JSON | None:
    """Send the request for one step; return the resulting object, if the response contains the object."""
    client, space, resource = acting.client, acting.namespace, whole(target.kind.resource)
    meta = target.workload["metadata"]
    uid = {"uid": meta["uid"]} if "uid" in meta else {}
    if step.does == "delete":
        with failing_as("delete", client, resource, target.name, space):
            client.delete(resource, target.name, space, **uid, propagation="Background", dry_run=dry_run)
        return None
    if step.does == "stopped":
        return _await(acting, target)
    with failing_as("change", client, resource, target.name, space):
        if step.does == "patch":
            try:
                return client.merge_patch(resource, target.name, _about(uid, step.value), space, dry_run=dry_run)
            except Refused as error:
                if why := _of_own_annotation(error):
                    raise Failed(f"{target.title}: {why}") from error
                raise
        if step.does == "command":
            order = command_to(resource, target.name, uid["uid"], step.value)
            return client.create(whole(COMMANDS), order, space, strict=True, dry_run=dry_run)
    for group in groups:
        with failing_as("move", client, POD_GROUPS, group.metadata.name, space):
            patch = _about({"uid": group.metadata.uid}, step.value)
            client.merge_patch(POD_GROUPS, group.metadata.name, patch, space, dry_run=dry_run)
    return None


def _about(uid: JSON, patch: JSON) -> JSON:
    return {**patch, "metadata": {**patch.get("metadata", {}), **uid}}


def _await(acting: Acting, target: Target) -> JSON:
    """Wait until the pods of a held workload have ended, and return the workload.

    After the timeout, raise Failed with advice.
    """
    verbs, until_s = target.kind.verbs, time.monotonic() + STOP_S
    while time.monotonic() < until_s:
        time.sleep(_POLL_S)
        with failing_as("read", acting.client, target.kind.resource, target.name, acting.namespace):
            found = acting.client.get(whole(target.kind.resource), target.name, acting.namespace)
        if verbs and verbs.commands and _generation(found) != _generation(target.workload):  # a patch replaces lists
            raise Failed(f"{target.title} was changed by another client in the meantime: repeat this command")
        if verbs and verbs.stopped(found):
            return found
    raise Failed(
        f"{target.title}: its pods are still terminating after {STOP_S:.0f} s: repeat this command when they are gone"
    )


def _generation(workload: JSON) -> Any:
    return workload["metadata"].get("generation")

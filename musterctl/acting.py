"""Workloads of every kind by name or label, and the steps that `muster.workloads.verbs` has for a verb."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import click
import msgspec

from muster.api.base import Resource
from muster.api.grammar import listed
from muster.api.kubernetes.meta import Object
from muster.api.muster.gang import workload_above
from muster.api.muster.states import WAITING, facts_of, state_of
from muster.api.volcano.batch import COMMANDS, command_to
from muster.api.volcano.scheduling import POD_GROUPS, PodGroup
from muster.kube.client import Client
from muster.kube.errors import Forbidden, NotFound
from muster.workloads.kind import WorkloadKind
from muster.workloads.sample import JSON
from muster.workloads.table import MAKERS, row_of
from muster.workloads.verbs import ACTED_ON, POD_GROUP, Asked, Condition, Step, condition_of, outcome
from musterctl.cluster import Failed, Where, connect_in, failing_as, for_each, may_list, name_of, whole
from musterctl.output.listing import show_object, since, without_managers

STOP_S = 120.0
"""The longest time that pods of a held workload are waited for."""
_POLL_S = 1.2
"""Time before each look at them; longer than admission remembers the size of a workload (`webhook.lookup`)."""
_WITHOUT_GANGS = ("cancel", "hold", "release")
"""Verbs whose outcome does not depend on the state of gangs."""


class Target(NamedTuple):
    """A workload as it was read."""

    kind: WorkloadKind
    workload: JSON

    @property
    def name(self) -> str:
        """Its name in its namespace."""
        return str(self.workload["metadata"]["name"])

    @property
    def title(self) -> str:
        """Kind and name as kubectl writes them."""
        return self.kind.resource.reference(self.name)

    @property
    def owner(self) -> str:
        """The workload that controls it, by whose verbs it changes; "" if it is its user's own."""
        above = msgspec.convert(self.workload, Object).metadata.controller
        row = row_of(above)
        return row.resource.reference(above.name) if above and row and above.kind not in MAKERS else ""


@dataclass(frozen=True, slots=True)
class Acting:
    """The cluster and the way in which verbs are carried out there."""

    client: Client
    namespace: str
    dry_run: bool = False
    output: str = "text"


def act_on(
    texts: Sequence[str],
    asked: Asked,
    namespace: str | None,
    where: Where,
    *,
    only: WorkloadKind | None = None,
    selector: str = "",
    dry_run: bool = False,
    output: str = "text",
) -> None:
    """Carry out a verb on workloads of these names, or with these labels, and print each outcome."""
    if bool(texts) == bool(selector):
        raise click.UsageError("give one or more names, or -l with a label selector")
    kinds = [_of_kind(text, only) for text in texts]
    client, space = connect_in(namespace, where)
    acting = Acting(client, space, dry_run, output)
    if selector:
        targets = [each for each in _labelled(client, space, selector) if not each.owner]
        if not targets:
            click.echo(f"No workloads found in {space} namespace.", err=True)
        for_each(targets, lambda target: _carry_out(acting, target, asked))
        return
    for_each(kinds, lambda each: _carry_out(acting, _find(client, space, *each, asked), asked))


def others_named(client: Client, name: str, namespace: str, resource: Resource[Any]) -> str:
    """Return a hint at workloads of other kinds that have the name of one that does not exist; "" without any."""
    others = [each for each in ACTED_ON if each.resource.reference("") != resource.reference("")]
    found, _ = _named(client, namespace, others if len(others) < len(ACTED_ON) else (), name)
    there = listed([each.title for each in found])
    return f"; there is {there}, which muster cancel, hold and its like take" if found else ""


def _of_kind(text: str, only: WorkloadKind | None) -> tuple[list[WorkloadKind], str]:
    """Return the kinds that `kind/name` may mean, all for a name alone, and the name. UsageError for other texts."""
    if only:
        return [only], name_of(only.resource, text)
    called, slash, name = text.rpartition("/")
    kinds = [each for each in ACTED_ON if not slash or called.lower() in _names(each)]
    if not kinds:
        known = listed([_names(each)[0] for each in ACTED_ON])
        raise click.UsageError(f"{called!r} is no kind with verbs; there are {known}")
    return kinds, name_of(kinds[0].resource, name)


def _names(kind: WorkloadKind) -> tuple[str, ...]:
    resource = kind.resource
    plain = (resource.kind.lower(), resource.plural)
    return (*(f"{each}.{resource.group}" for each in plain), *plain) if resource.group else plain


def _named(
    client: Client, namespace: str, kinds: Iterable[WorkloadKind], name: str
) -> tuple[list[Target], list[WorkloadKind]]:
    """Return the workloads of this name that are no part of another one, and the kinds that may not be read."""
    found, forbidden = list[Target](), list[WorkloadKind]()
    for kind in kinds:
        try:
            found.append(Target(kind, client.get(whole(kind.resource), name, namespace)))
        except Forbidden:
            forbidden.append(kind)
        except NotFound:
            continue
    return [each for each in found if not each.owner] or found[:1], forbidden


def _find(client: Client, namespace: str, kinds: list[WorkloadKind], name: str, asked: Asked) -> Target:
    """Return the workload that is meant; Failed if there is none, there are several, or another one controls it."""
    if len(kinds) == 1:
        with failing_as("read", client, kinds[0].resource, name, namespace):
            found = [Target(kinds[0], _read(client, namespace, kinds[0], name, unseen=asked.verb == "cancel"))]
    else:
        found, forbidden = _named(client, namespace, kinds, name)
        if not found:
            hidden = listed([each.resource.plural for each in forbidden])
            unread = f"; you may not read {hidden}, so name its kind, as in pod/{name}" if forbidden else ""
            raise Failed(f"there is no workload {name} in namespace {namespace}{unread}")
    if len(found) > 1:
        there = [each.title for each in found]
        raise Failed(f"{name} is the name of {listed(there)}: muster {asked.verb} {there[0]} means the first")
    if owner := found[0].owner:
        raise Failed(f"{found[0].title} is a part of {owner}, which changes it: muster {asked.verb} {owner}")
    return found[0]


def _read(client: Client, namespace: str, kind: WorkloadKind, name: str, *, unseen: bool) -> JSON:
    """Return a workload; `unseen`: no more than its name if the user may not read it."""
    try:
        return client.get(whole(kind.resource), name, namespace)
    except Forbidden:
        if unseen:
            return {"metadata": {"name": name}}
        raise


def _labelled(client: Client, namespace: str, selector: str) -> list[Target]:
    return [
        Target(kind, each)
        for kind in ACTED_ON
        for each in may_list(client, whole(kind.resource), namespace, label_selector=selector) or ()
    ]


def _carry_out(acting: Acting, target: Target, asked: Asked) -> None:
    """Take the steps of one outcome, and print it."""
    groups = None if asked.verb in _WITHOUT_GANGS else _groups(acting, target)
    condition = condition_of(target.kind, target.workload, _state(groups))
    found = outcome(target.kind, target.workload, condition, asked)
    if found.refused:
        waits = next((each for each in groups or () if condition in {"waiting", "evicted"}), None)
        waited = f" (it has waited for {since(waits.metadata.creation_timestamp)})" if waits else ""
        raise Failed(f"{target.title}: {found.says}{waited}")
    if any(step.does == "gangs" for step in found.steps) and not groups:
        raise Failed(
            f"{target.title}: it has no PodGroup of {POD_GROUPS.group} that could move; `muster ps` shows gangs"
        )
    result = target.workload
    first = [step.does for step in found.steps].index("stopped") if Step("stopped") in found.steps else None
    if acting.dry_run or len(found.steps) > 1:  # all or nothing, as far as admission is concerned
        for step in found.steps[:first]:
            result = _take(acting, target, step, groups or (), dry_run=True) or result
    for step in () if acting.dry_run else found.steps:
        result = _take(acting, target, step, groups or (), dry_run=False) or result
    if acting.output == "text":
        click.echo(f"{target.title} {found.says}{' (dry run)' if acting.dry_run else ''}")
    else:
        show_object(without_managers(result), acting.output)


def _groups(acting: Acting, target: Target) -> list[PodGroup] | None:
    """Return the PodGroups of a workload; None if the user may not list them."""
    if target.kind is POD_GROUP:
        return [msgspec.convert(target.workload, PodGroup)]
    uid = target.workload["metadata"]["uid"]
    groups = may_list(acting.client, POD_GROUPS, acting.namespace)
    return None if groups is None else [each for each in groups if uid in _uids(each)]


def _uids(group: PodGroup) -> set[str]:
    above = workload_above(group.metadata)
    return {group.metadata.uid, *(each.uid for each in group.metadata.owner_references), above.uid if above else ""}


def _state(groups: Sequence[PodGroup] | None) -> Condition:
    """Return the state of gangs; those that may not be read count as running, as do pods without one."""
    waiting = [each for each in groups or () if state_of(facts_of(each)) in WAITING]
    if not groups or len(waiting) < len(groups):
        return "running"
    return "evicted" if any(each.evicted for each in waiting) else "waiting"


def _take(acting: Acting, target: Target, step: Step, groups: Sequence[PodGroup], *, dry_run: bool) -> JSON | None:
    """Make one request; return the object as it is then, if the request shows it."""
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
            return client.merge_patch(resource, target.name, _about(uid, step.value), space, dry_run=dry_run)
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
    """Wait until the pods of a held workload have ended; Failed says what to do if that takes too long."""
    verbs, until_s = target.kind.verbs, time.monotonic() + STOP_S
    while time.monotonic() < until_s:
        time.sleep(_POLL_S)
        with failing_as("read", acting.client, target.kind.resource, target.name, acting.namespace):
            found = acting.client.get(whole(target.kind.resource), target.name, acting.namespace)
        if verbs and verbs.stopped(found):
            return found
    raise Failed(
        f"{target.title} is held, and its pods have not ended after {STOP_S:.0f} s: repeat this command once they "
        f"have, then muster release {target.title}"
    )

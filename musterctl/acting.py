"""Execution of verbs (cancel, hold, …) on workloads that are chosen by name or label.

The module `muster.workloads.verbs` defines the steps of each verb.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import click
import msgspec

from gangs.plainjobs import held_queue
from muster.api.base import Resource
from muster.api.grammar import listed
from muster.api.muster.gang import workload_above
from muster.api.muster.states import WAITING, facts_of, state_of
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES, PodGroup
from muster.kube.client import Client
from muster.kube.errors import Forbidden, NotFound
from muster.workloads.capacity import requests_at, requests_of, without_place
from muster.workloads.kind import WorkloadKind
from muster.workloads.podgroup import POD_GROUP
from muster.workloads.sample import JSON
from muster.workloads.verbs import ACTED_ON, Condition, VerbRequest, changed, condition_of, outcome
from musterctl.cluster import Failed, Where, connect_in, failing_as, for_each, may_list, name_of, whole
from musterctl.output.listing import show_object, since, without_managers
from musterctl.steps import Acting, Target, take_steps, try_steps

_SHORT = {
    "sts": "statefulset.apps", "deploy": "deployment.apps", "po": "pod", "pg": "podgroup.scheduling.volcano.sh",
    "vcjob": "job.batch.volcano.sh", "vj": "job.batch.volcano.sh", "tj": "trainjob.trainer.kubeflow.org",
    "lws": "leaderworkerset.leaderworkerset.x-k8s.io",
}  # fmt: skip
"""Maps short names, as in kubectl, to kinds of workloads."""
_WITHOUT_GANGS = ("cancel", "hold", "release")
"""Verbs whose outcome does not depend on the state of the workload's gangs."""


def act_on(
    texts: Sequence[str],
    request: VerbRequest,
    namespace: str | None,
    where: Where,
    *,
    only: WorkloadKind | None = None,
    selector: str = "",
    dry_run: bool = False,
    output: str = "text",
) -> None:
    """Carry out a verb on the workloads with these names or labels, and print each outcome."""
    if bool(texts) == bool(selector):
        raise click.UsageError("give one or more names, or -l with a label selector")
    kinds = [_of_kind(text, only) for text in texts]
    client, space = connect_in(namespace, where)
    acting = Acting(client, space, dry_run, output)
    if selector:
        targets = [each for each in _labelled(client, space, selector) if not each.owner]
        if not targets:
            click.echo(f"No workloads found in {space} namespace.", err=True)
        for_each(targets, lambda target: _carry_out(acting, target, request))
        return
    for_each(kinds, lambda each: _carry_out(acting, _find(client, space, *each, request), request))


def others_named(client: Client, name: str, namespace: str, resource: Resource[Any]) -> str:
    """Return a hint if workloads of other kinds have the name that was not found; otherwise ""."""
    others = [each for each in ACTED_ON if each.resource.reference("") != resource.reference("")]
    found, _ = _named(client, namespace, others if len(others) < len(ACTED_ON) else (), name)
    there = listed([each.title for each in found])
    return f"; there is {there}, which muster cancel, hold and similar commands accept" if found else ""


def _of_kind(text: str, only: WorkloadKind | None) -> tuple[list[WorkloadKind], str]:
    """Return the name in an argument, and the kinds to which `kind/name` may refer; a name alone may refer to any kind.

    Raise UsageError if the text names no kind that a verb can change.
    """
    if only:
        return [only], name_of(only.resource, text)
    called, slash, name = text.rpartition("/")
    called = _SHORT.get(called.lower(), called.lower())
    kinds = [each for each in ACTED_ON if not slash or called in _names(each)]
    if not kinds:
        known = listed([_names(each)[0] for each in ACTED_ON])
        raise click.UsageError(f"{called!r} is not a kind that this command can change; it can change {known}")
    return kinds, name_of(kinds[0].resource, name)


def _names(kind: WorkloadKind) -> tuple[str, ...]:
    resource = kind.resource
    plain = (resource.kind.lower(), resource.plural)
    return (*(f"{each}.{resource.group}" for each in plain), *plain) if resource.group else plain


def _named(
    client: Client, namespace: str, kinds: Iterable[WorkloadKind], name: str
) -> tuple[list[Target], list[WorkloadKind]]:
    """Return the workloads with this name that belong to no other workload.

    Also return the kinds that the user is not allowed to read.
    """
    found, forbidden = list[Target](), list[WorkloadKind]()
    for kind in kinds:
        try:
            found.append(Target(kind, client.get(whole(kind.resource), name, namespace)))
        except Forbidden:
            forbidden.append(kind)
        except NotFound:
            continue
    return [each for each in found if not each.owner] or found[:1], forbidden


def _find(client: Client, namespace: str, kinds: list[WorkloadKind], name: str, request: VerbRequest) -> Target:
    """Return the workload with this name.

    Raise Failed if no workload or several workloads have this name, or if another workload controls it.
    """
    if len(kinds) == 1:
        with failing_as("read", client, kinds[0].resource, name, namespace):
            found = [
                Target(kinds[0], _read_workload(client, namespace, kinds[0], name, unseen=request.verb == "cancel"))
            ]
    else:
        found, forbidden = _named(client, namespace, kinds, name)
        if not found:
            hidden = listed([each.resource.plural for each in forbidden])
            unread = f"; you cannot read {hidden}, so name its kind, as in pod/{name}" if forbidden else ""
            raise Failed(f"there is no workload {name} in namespace {namespace}{unread}")
    if len(found) > 1:
        there = [each.title for each in found]
        raise Failed(
            f"several workloads are named {name}: {listed(there)}; for the first, run: muster {request.verb} {there[0]}"
        )
    if owner := found[0].owner:
        has_verbs = any(owner.startswith(each.resource.reference("")) for each in ACTED_ON)
        way = f": muster {request.verb} {owner}" if has_verbs else ""
        raise Failed(f"{found[0].title} belongs to {owner}, whose controller would revert the change{way}")
    return found[0]


def _read_workload(client: Client, namespace: str, kind: WorkloadKind, name: str, *, unseen: bool) -> JSON:
    """Return a workload. With `unseen`, return only the name of a workload that the user is not allowed to read."""
    try:
        return client.get(whole(kind.resource), name, namespace)
    except Forbidden:
        if unseen:
            return {"metadata": {"name": name}}
        raise


def _labelled(client: Client, namespace: str, selector: str) -> list[Target]:
    found, forbidden = list[Target](), list[str]()
    for kind in ACTED_ON:
        try:
            there = client.list(whole(kind.resource), namespace, label_selector=selector)
        except Forbidden:
            forbidden.append(kind.resource.full_name)
        except NotFound:
            continue  # the cluster has no such kind
        else:
            found += [Target(kind, each) for each in there]
    if forbidden:
        click.echo(f"These kinds are omitted, because you cannot list them: {listed(forbidden)}.", err=True)
    return found


def _carry_out(acting: Acting, target: Target, request: VerbRequest) -> None:
    """Carry out the steps of a verb on one workload, and print the outcome."""
    groups = None if request.verb in _WITHOUT_GANGS else _groups(acting, target)
    condition = condition_of(target.kind, target.workload, _state(groups))
    found = outcome(target.kind, target.workload, condition, request)
    if found.refused:
        waits = next((each for each in groups or () if condition in {"waiting", "evicted"}), None)
        waited = f" (it has waited for {since(waits.metadata.creation_timestamp)})" if waits else ""
        raise Failed(f"{target.title}: {found.message}{waited}")
    if any(step.does == "gangs" for step in found.steps) and not groups:
        raise Failed(
            f"{target.title}: it has no PodGroup of {POD_GROUPS.group} that could move; `muster ps` shows gangs"
        )
    if request.verb == "resize":
        _warn_without_place(acting, target, condition, request, groups or ())
    result = target.workload
    if acting.dry_run or len(found.steps) > 1:  # so that admission refuses all steps or none
        result = try_steps(acting, target, found.steps, groups or ()) or result
    if not acting.dry_run:
        result = take_steps(acting, target, found.steps, groups or ()) or result
    if acting.output == "text":
        click.echo(f"{target.title} {found.message}{' (dry run)' if acting.dry_run else ''}")
    else:
        show_object(without_managers(result), acting.output)


def _warn_without_place(
    acting: Acting, target: Target, condition: Condition, request: VerbRequest, groups: Sequence[PodGroup]
) -> None:
    """Print a warning if a workload grows, and the Queues that the user can list show that not all its pods can run."""
    kind, workload = target.kind, target.workload
    queue = groups[0].spec.queue if groups else held_queue(kind, workload, None)
    queues = {each.metadata.name: each for each in (queue and may_list(acting.client, QUEUES)) or ()}

    def of_size(size: int) -> JSON:
        return changed(workload, outcome(kind, workload, condition, request._replace(size=size)).steps)

    with suppress(ValueError):  # admission has better messages for unreadable values
        before, wanted = requests_of(kind, workload), requests_at(kind, request.size, of_size)
        grows = any(amount > before.get(name, 0) for name, amount in wanted.items())
        own = before if condition == "running" else {}
        if queues and grows and (why := without_place(wanted, own, queue, queues.get)):
            click.echo(f"Warning: {target.title}: {why}", err=True)


def _groups(acting: Acting, target: Target) -> list[PodGroup] | None:
    """Return the PodGroups of a workload; None if the user is not allowed to list PodGroups."""
    if target.kind is POD_GROUP:
        return [msgspec.convert(target.workload, PodGroup)]
    uid = target.workload["metadata"]["uid"]
    groups = acting.groups
    return None if groups is None else [each for each in groups if uid in _uids(each)]


def _uids(group: PodGroup) -> set[str]:
    above = workload_above(group.metadata)
    return {group.metadata.uid, *(each.uid for each in group.metadata.owner_references), above.uid if above else ""}


def _state(groups: Sequence[PodGroup] | None) -> Condition:
    """Return the state of a workload, from the states of its gangs.

    A workload counts as running if it has no gangs, or if the user is not allowed to read its gangs.
    """
    waiting = [each for each in groups or () if state_of(facts_of(each)) in WAITING]
    if not groups or len(waiting) < len(groups):
        return "running"
    return "evicted" if any(each.evicted for each in waiting) else "waiting"

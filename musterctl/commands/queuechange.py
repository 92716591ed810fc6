"""`muster queue create`, `update` and `delete`, and the list of the gangs in a queue, with their owners."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import click

from gangs.row import GangRow
from gangs.rows import RowSources, rows
from muster.api.grammar import listed
from muster.api.kubernetes.core import NODES
from muster.api.muster.states import ENDED
from muster.api.names import NAMESPACE_SELECTOR, NODE_POOL, ROOT_QUEUE
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES, PodGroup
from muster.kube.client import Client
from muster.resources.labels import read_selector
from muster.resources.typos import EVERYWHERE, similar_resource
from musterctl.cluster import JSON, Failed, Where, create, delete, failing_as, for_each, may_list, name_of
from musterctl.options import name_argument, where_options, with_options
from musterctl.output.listing import amounts

F = TypeVar("F", bound=Callable[..., Any])
AMOUNTS = ("capability", "deserved", "guarantee")
NONE = "none"
"""Value of an option that removes a limit."""
_HUGE_PAGES = "hugepages-"
_INT32 = 2**31 - 1


class QueueCommand(click.Command):
    """A command with a helpful error for a value after --reclaimable, which is a switch without a value."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; if --reclaimable has a value, raise an error that names the right option."""
        for option, value in pairwise(word for each in args for word in each.split("=", 1)):
            if option in {"--reclaimable", "--not-reclaimable"} and value.lower() in {"true", "false"}:
                ctx.fail(f"{option} takes no value: write --reclaimable for true, --not-reclaimable for false")
        return super().parse_args(ctx, args)


def queue_options(*, parent: str | None, weight: int | None, reclaimable: bool | None) -> Callable[[F], F]:
    """Return a decorator that adds the options of a queue with these defaults; None leaves a field unchanged."""
    shown = weight is not None

    def decorate(command: F) -> F:
        return with_options(
            command,
            click.option("--parent", default=parent, show_default=shown, help="The queue above."),
            click.option(
                "--weight",
                type=click.IntRange(1, 65535),
                default=weight,
                show_default=shown,
                help="The queue's share of the capacity beyond all quotas.",
            ),
            click.option(
                "--priority",
                type=click.IntRange(-_INT32, _INT32),
                help="Queues with a higher priority come first.  [default: 0]" if shown else "Higher ones come first.",
            ),
            click.option(
                "--capability", multiple=True, help="The maximum usage of the queue: cpu=64,nvidia.com/gpu=8."
            ),
            click.option(
                "--deserved",
                multiple=True,
                help="The queue's quota, which is met before weights count: cpu=32,nvidia.com/gpu=4.",
            ),
            click.option(
                "--guarantee", multiple=True, help="Resources that stay free for the queue: nvidia.com/gpu=2."
            ),
            click.option(
                "--reclaimable/--not-reclaimable",
                default=reclaimable,
                help="Whether other queues may reclaim the queue's borrowed capacity.",
            ),
            click.option(
                "--namespace-selector",
                default="" if shown else None,
                metavar="LABELS",
                help="The namespaces that may use the queue: 'team=vision,env in (a,b)'.",
            ),
            click.option(
                "--pool",
                help="For a root queue: the node pool of its tree."
                + ("" if shown else f" `{NONE}` is the default pool."),
            ),
        )

    return decorate


def queue_content(options: Mapping[str, Any]) -> JSON:
    """Return the spec, annotations and labels that the options set, as an object or a merge patch.

    An amount of `none` becomes null, which removes the limit. Raise BadParameter if an option is invalid.
    """
    selector: str | None = options["namespace_selector"]
    try:
        read_selector(selector or "")
    except ValueError as error:
        raise click.BadParameter(str(error), None, None, "--namespace-selector") from error
    given = {name: options[name] for name in ("parent", "weight", "priority", "reclaimable")}
    spec: JSON = {name: value for name, value in given.items() if value is not None}
    for name in AMOUNTS:
        typed = amounts(options[name], f"--{name}")
        wanted = {resource: None if amount == NONE else amount for resource, amount in typed.items()}
        if wanted:
            spec[name] = {"resource": wanted} if name == "guarantee" else wanted
    content: JSON = {"spec": spec} if spec else {}
    metadata: JSON = {}
    if selector is not None:
        metadata["annotations"] = {NAMESPACE_SELECTOR: selector or None}
    if pool := options["pool"]:
        metadata["labels"] = {NODE_POOL: None if pool == NONE else pool}
    return content | ({"metadata": metadata} if metadata else {})


def check_resources(client: Client, options: Mapping[str, Any]) -> None:
    """Refuse a name that looks like a misspelt resource of the cluster; print a warning for other unknown names."""
    asked = {name: amounts(options[name], f"--{name}") for name in AMOUNTS}
    if not any(asked.values()):
        return
    known = known_resources(client)
    for option, typed in asked.items():
        for resource in typed:
            if resource in known or resource.startswith(_HUGE_PAGES):
                continue
            near = similar_resource(resource, known)
            if near:
                message = f"{resource} is an unknown resource: no node and no queue has it; did you mean {near}?"
                raise click.BadParameter(message, None, None, f"--{option}")
            click.echo(f"Warning: {resource} is an unknown resource: no node and no queue has it", err=True)


def known_resources(client: Client) -> set[str]:
    """Return the names of resources of the nodes and queues that the user can list."""
    known = set(EVERYWHERE)
    for node in may_list(client, NODES) or ():
        known |= node.status.allocatable.keys()
    for queue in may_list(client, QUEUES) or ():
        spec = queue.spec
        known |= {*spec.capability, *spec.deserved, *spec.guarantee.resource, *queue.status.allocated}
    return known


one_argument = name_argument(QUEUES, "queue_name")
names_argument = name_argument(QUEUES, "queue_names", several=True)


def rows_of(groups: Sequence[PodGroup]) -> list[GangRow]:
    """Return the table rows of these gangs, computed only from their PodGroups."""
    return rows(RowSources(groups=list(groups), pods=None, placements=None, jobs=None, train_jobs=None))


def called(row: GangRow) -> str:
    """Return a gang's owner with its namespace: `Job team/longrun`."""
    return f"{row.kind} {row.namespace}/{row.name}"


@click.command("create", cls=QueueCommand)
@one_argument
@queue_options(parent=ROOT_QUEUE, weight=1, reclaimable=True)
@where_options
def create_queue(*, queue_name: str, where: Where, **options: Any) -> None:
    """Creates a queue below a parent."""
    content = queue_content(options)
    metadata: JSON = {"name": name_of(QUEUES, queue_name)}
    given: JSON = content.pop("metadata", {})
    metadata |= {field: values for field, values in given.items() if None not in values.values()}
    client = where.client()
    check_resources(client, options)
    create(client, QUEUES, {**content, "metadata": metadata})


@click.command(
    "update", cls=QueueCommand, epilog="\b\nmuster queue update team --weight 3 --capability nvidia.com/gpu=16,cpu=none"
)
@one_argument
@queue_options(parent=None, weight=None, reclaimable=None)
@where_options
def update_queue(*, queue_name: str, where: Where, **options: Any) -> None:
    """Changes the given fields of a queue.

    An amount of `none` removes the limit of that resource.
    """
    name, content = name_of(QUEUES, queue_name), queue_content(options)
    if not content:
        raise click.UsageError("there is nothing to change: give at least one option, for example --weight 3")
    client = where.client()
    check_resources(client, options)
    with failing_as("change", client, QUEUES, name):
        client.merge_patch(QUEUES, name, content)
    click.echo(f"{QUEUES.reference(name)} updated")


@click.command("delete")
@names_argument
@click.option(
    "--force",
    is_flag=True,
    help="Delete the queue even if gangs wait in it; they then wait until a queue of this name is created.",
)
@where_options
def delete_queue(*, queue_names: tuple[str, ...], force: bool, where: Where) -> None:
    """Deletes queues that have no gangs and no child queues."""
    wanted = [name_of(QUEUES, name) for name in queue_names]
    client = where.client()

    def remove(name: str) -> None:
        groups = [] if force else may_list(client, POD_GROUPS) or []
        held = rows_of([group for group in groups if group.spec.queue == name])
        gangs = [called(row) for row in held if row.state not in ENDED]
        if gangs:
            raise Failed(
                f"{QUEUES.reference(name)} has gangs: {listed(gangs)}. Close it with `muster queue close {name}` and "
                "wait until they have ended; --force deletes the queue now, unless pods are running in it"
            )
        delete(client, QUEUES, name)

    for_each(wanted, remove)


CHANGES = (create_queue, update_queue, delete_queue)

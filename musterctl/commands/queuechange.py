"""`muster queue create`, `update` and `delete`; and the gangs of a queue, as their owners call them."""

from collections.abc import Sequence
from typing import Any

import click

from extender.planner.reasons.grammar import listed
from muster.api.names import ROOT_QUEUE
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES, PodGroup
from musterctl import completion
from musterctl.cluster import JSON, Failed, Where, create, failing_as, for_each, name_of, reference
from musterctl.commands.queuespec import check_resources, queue_content, queue_options
from musterctl.gangs.read import may_list
from musterctl.gangs.rows import Objects, Row, rows
from musterctl.gangs.states import ENDED
from musterctl.options import where_options

name_argument = click.argument("queue_name", metavar="NAME", shell_complete=completion.names_of(QUEUES))
names_argument = click.argument(
    "queue_names", metavar="NAME...", nargs=-1, required=True, shell_complete=completion.names_of(QUEUES)
)


def rows_of(groups: Sequence[PodGroup]) -> list[Row]:
    """Return the rows of these gangs, made of their PodGroups alone."""
    return rows(Objects(groups=list(groups), pods=None, placements=None, jobs=None, train_jobs=None))


def called(row: Row) -> str:
    """Return a gang as its owner calls it, with its namespace: `Job team/longrun`."""
    return f"{row.kind} {row.namespace}/{row.name}"


@click.command("create")
@name_argument
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


@click.command("update", epilog="\b\nmuster queue update team --weight 3 --capability nvidia.com/gpu=16,cpu=none")
@name_argument
@queue_options(parent=None, weight=None, reclaimable=None)
@where_options
def update_queue(*, queue_name: str, where: Where, **options: Any) -> None:
    """Changes what is given, and leaves the rest of a queue.

    An amount of `none` takes the limit of that resource away.
    """
    name, content = name_of(QUEUES, queue_name), queue_content(options)
    if not content:
        raise click.UsageError("there is nothing to change: give at least one option, for example --weight 3")
    client = where.client()
    check_resources(client, options)
    with failing_as("change", client, QUEUES, name):
        client.merge_patch(QUEUES, name, content)
    click.echo(f"{reference(QUEUES, name)} updated")


@click.command("delete")
@names_argument
@click.option("--force", is_flag=True, help="Delete a queue with gangs, too: those that wait then wait for it.")
@where_options
def delete_queue(*, queue_names: tuple[str, ...], force: bool, where: Where) -> None:
    """Deletes queues without gangs, and without queues below them."""
    wanted = [name_of(QUEUES, name) for name in queue_names]
    client = where.client()

    def remove(name: str) -> None:
        groups = [] if force else may_list(client, POD_GROUPS) or []
        held = rows_of([group for group in groups if group.spec.queue == name])
        gangs = [called(row) for row in held if row.state not in ENDED]
        if gangs:
            raise Failed(
                f"{reference(QUEUES, name)} has gangs: {listed(gangs)}. Close it with `muster queue close {name}` and "
                "wait for their end, or delete it with --force"
            )
        with failing_as("delete", client, QUEUES, name):
            client.delete(QUEUES, name)
        click.echo(f'{reference(QUEUES, "")[:-1]} "{name}" deleted')

    for_each(wanted, remove)


CHANGES = (create_queue, update_queue, delete_queue)

"""`muster cancel`, `hold`, `release`, `move`, `priority` and `resize`: commands for workloads of every kind."""

from typing import Any

import click

from muster.api.base import Resource
from muster.api.volcano.scheduling import QUEUES
from muster.workloads.table import row
from muster.workloads.verbs import Verb, VerbRequest
from musterctl import completion
from musterctl.acting import act_on
from musterctl.cluster import Where, name_of
from musterctl.options import (
    Command,
    name_argument,
    namespace_option,
    object_output_option,
    where_options,
    with_options,
)


def _options(command: Command) -> Command:
    """Add the options that all verbs share: NAME... or -l, --dry-run, -o, the namespace and the cluster."""
    return with_options(
        command,
        click.argument("texts", metavar="[[KIND/]NAME]...", nargs=-1, shell_complete=completion.workloads),
        click.option("-l", "--selector", default="", help="Workloads with these labels, instead of names."),
        click.option("--dry-run", is_flag=True, help="Only check the change with the API server."),
        object_output_option,
        namespace_option,
        where_options,
    )


def _plain(verb: Verb, text: str) -> click.Command:
    """Return the command of a verb that has no options of its own."""

    @click.command(verb, help=text)
    @_options
    def run(*, texts: tuple[str, ...], namespace: str | None, where: Where, **how: Any) -> None:
        act_on(texts, VerbRequest(verb), namespace, where, **how)

    return run


def of_kind(name: str, verb: Verb, resource: Resource[Any], text: str) -> click.Command:
    """Return a command that carries out a verb on objects of one kind; the arguments of the command are names."""

    @click.command(name, help=text)
    @name_argument(resource, "texts", several=True)
    @namespace_option
    @where_options
    def run(*, texts: tuple[str, ...], namespace: str | None, where: Where) -> None:
        act_on(texts, VerbRequest(verb), namespace, where, only=row(resource))

    return run


cancel = _plain("cancel", "Deletes workloads of any kind with their pods.")
hold = _plain("hold", "Takes workloads out of their queue, and deletes their pods.")
release = _plain("release", "Returns held workloads to their queue.")


@click.command(epilog="\b\nmuster move train --queue research")
@click.option(
    "--queue",
    required=True,
    shell_complete=completion.names_of(QUEUES),
    help="The new queue of the workloads.",
)
@_options
def move(*, texts: tuple[str, ...], queue: str, namespace: str | None, where: Where, **how: Any) -> None:
    """Moves workloads to another queue; their pods keep running."""
    act_on(texts, VerbRequest("move", name_of(QUEUES, queue)), namespace, where, **how)


@click.command(epilog="\b\nmuster priority train --class urgent")
@click.option("--class", "name", required=True, help="The PriorityClass.")
@_options
def priority(*, texts: tuple[str, ...], name: str, namespace: str | None, where: Where, **how: Any) -> None:
    """Gives workloads another PriorityClass.

    If a controller creates the pods from a template, waiting pods are re-created with the new class.
    """
    act_on(texts, VerbRequest("priority", name), namespace, where, **how)


@click.command(epilog="\b\nmuster resize train --size 8\nmuster resize train --size 8 --task worker")
@click.option(
    "--size",
    type=click.IntRange(min=1),
    required=True,
    help="The number of pods; for a LeaderWorkerSet the number of groups, for an elastic TrainJob the number of nodes.",
)
@click.option("--task", default="", help="The task to resize, for a Volcano Job with several tasks.")
@_options
def resize(*, texts: tuple[str, ...], size: int, task: str, namespace: str | None, where: Where, **how: Any) -> None:
    """Changes the number of pods of workloads.

    If the framework gives the number of pods to each pod, all pods are restarted.
    """
    act_on(texts, VerbRequest("resize", size=size, task=task), namespace, where, **how)

"""`muster queue`: queues on the command line, and the shares that the planner computes for them."""

import time
from collections.abc import Callable, Iterator, Mapping

import click

from extender.explain.queues import own_queues
from muster.api import names
from muster.api.grammar import many
from muster.api.names import NAMESPACE_SELECTOR
from muster.api.volcano.batch import COMMANDS, command_to
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES, Queue
from muster.kube.client import Client
from muster.kube.errors import Forbidden
from muster.volcano.access import lineage, pool_of_queue
from musterctl.allowed import gangs_for, no_queues, reports_for
from musterctl.cluster import JSON, Where, connect_in, failing_as, for_each, get, known, name_of
from musterctl.commands.jobview import event_lines
from musterctl.commands.queuechange import CHANGES, called, names_argument, one_argument, rows_of
from musterctl.options import listing_options, namespace_option, object_output_option, where_options
from musterctl.output.listing import Column, Listing, age, from_spec, from_status, show_object, without_managers
from musterctl.output.report import own_queue_lines, print_report, queue_lines, top_lines
from musterctl.output.terminal import Console
from musterctl.reader import ClusterReader, report_options

WATCH_S = 5
"""Seconds between two reads of a whole cluster."""


def again(show: Callable[[], None], *, watch: bool) -> None:
    """Show the output once; with `watch`, refresh the output until the user interrupts the command.

    An interruption is not an error.
    """
    show()
    try:
        while watch:
            time.sleep(WATCH_S)
            Console().clear()  # no effect if the output is not a terminal
            show()
    except KeyboardInterrupt:
        click.echo()


def _shown(quantities: JSON) -> str:
    return ",".join(f"{name}={amount}" for name, amount in quantities.items()) or "-"


def _namespaces(queue: JSON) -> str:
    """Return the queue's own namespace selector, as text; the selectors of the queue's ancestors also apply."""
    annotations = queue.get("metadata", {}).get("annotations") or {}
    return annotations.get(NAMESPACE_SELECTOR) or "all"


COLUMNS = (
    from_status("STATE", "state", ""),
    from_spec("PARENT", "parent"),
    from_spec("WEIGHT", "weight", 1),
    from_status("PENDING", "pending"),
    from_status("INQUEUE", "inqueue"),
    from_status("RUNNING", "running"),
    Column("AGE", age),
    Column("NAMESPACES", _namespaces),
    Column("ALLOCATED", lambda queue: _shown(queue.get("status", {}).get("allocated", {})), wide=True),
    Column("DESERVED", lambda queue: _shown(queue.get("spec", {}).get("deserved", {})), wide=True),
    Column("CAPABILITY", lambda queue: _shown(queue.get("spec", {}).get("capability", {})), wide=True),
)


@click.group()
def queue() -> None:
    """Lists, shows, explains, creates, changes and deletes queues."""


@queue.command("list")
@listing_options
@where_options
def list_queues(*, selector: str, output: str, watch: bool, where: Where) -> None:
    """Lists queues with their parents and the states of their gangs."""
    Listing(QUEUES, COLUMNS, output).show(where.client(), None, selector, watch=watch)


@queue.command()
@one_argument
@object_output_option
@where_options
def view(*, queue_name: str, output: str, where: Where) -> None:
    """Shows a queue with its amounts, gangs and latest events."""
    name = name_of(QUEUES, queue_name)
    client = where.client()
    found = get(client, QUEUES, name)
    if output != "text":
        show_object(without_managers(found), output)
        return
    spec, status = found.get("spec", {}), found.get("status", {})
    queues = {each.metadata.name: each for each in client.list(QUEUES)}
    below = [each.metadata.name for each in queues.values() if each.spec.parent == name]
    for title, value in (
        ("Name", name),
        ("State", status.get("state") or "Open"),
        ("Parent", spec.get("parent") or "-"),
        ("Below", ", ".join(sorted(below)) or "-"),
        ("Namespaces", "; ".join(_restrictions(name, queues)) or "all"),
        ("Node pool", pool_of_queue(name, queues.get) or "-"),
        ("Weight", spec.get("weight", 1)),
        ("Reclaimable", "no" if spec.get("reclaimable") is False else "yes"),
        ("Capability", _shown(spec.get("capability", {}))),
        ("Deserved", _shown(spec.get("deserved", {}))),
        ("Guarantee", _shown(spec.get("guarantee", {}).get("resource", {}))),
        ("Allocated", _shown(status.get("allocated", {}))),
        *_limits(found),
    ):
        click.echo(f"{title + ':':<13}{value}")
    _show_gangs(client, name, status)
    for line in event_lines(client, found):
        click.echo(line)


def _limits(found: JSON) -> Iterator[tuple[str, str]]:
    """Yield the limits that annotations of a queue set, in addition to its capability."""
    annotations = found.get("metadata", {}).get("annotations") or {}
    for title, key in (("Per user", names.MAX_PER_USER), ("By model", names.MAX_BY_MODEL), ("Windows", names.WINDOWS)):
        if key in annotations:
            yield title, annotations[key]
    if names.BUDGET in annotations:
        yield "Budget", f"{annotations[names.BUDGET]} ({annotations.get(names.BUDGET_MODE) or 'warn'})"


def _restrictions(name: str, queues: Mapping[str, Queue]) -> Iterator[str]:
    """Yield the namespace selectors of a queue and its ancestors; a namespace must match all of them."""
    for above in lineage(name, queues.get):
        text = above.metadata.annotations.get(NAMESPACE_SELECTOR)
        if text:
            yield text if above.metadata.name == name else f"{text} (of {above.metadata.name})"


def _show_gangs(client: Client, queue_name: str, status: JSON) -> None:
    """Print the gangs of a queue, or only their number if the user cannot list the gangs of all namespaces."""
    try:
        with known(client, POD_GROUPS):
            gangs = [group for group in client.list(POD_GROUPS) if group.spec.queue == queue_name]
    except Forbidden:
        counts = [f"{status.get(phase, 0)} {phase}" for phase in ("running", "inqueue", "pending")]
        click.echo(f"Gangs: {', '.join(counts)} (you cannot list the gangs of all namespaces)")
        return
    click.echo("Gangs:" if gangs else "Gangs: none")
    for row in rows_of(gangs):
        why = f": {row.reason}" if row.reason else ""
        click.echo(f"  {called(row)}: {row.state}, {many(row.minimum, 'pod')} at least{why}")


@queue.command()
@click.option("--resource", default="", help="Resource to compare by.  [default: each queue's most used]")
@click.option("-w", "--watch", is_flag=True, help=f"Refresh the output every {WATCH_S} seconds until interrupted.")
@report_options
def top(*, resource: str, watch: bool, output: str, read: ClusterReader) -> None:
    """Shows the usage, the share and the waiting gangs of each queue.

    The amounts of a queue include its descendants' amounts. If you are not allowed to list the whole cluster, the
    command shows the status of each Queue, or the positions of your own gangs.
    """
    again(lambda: _show_top(resource, output, read), watch=watch)


def _show_top(resource: str, output: str, read: ClusterReader) -> None:
    try:
        reports = reports_for(read)
    except Forbidden as error:
        found = own_queues(gangs_for(read, error))
        print_report(found, own_queue_lines(found), output)
    else:
        print_report(reports, top_lines(reports, resource), output)


@queue.command("explain")
@one_argument
@report_options
def explain_queue(*, queue_name: str, output: str, read: ClusterReader) -> None:
    """Explains the amounts of a queue, and why gangs wait in it."""
    try:
        reports = {report.queue: report for report in reports_for(read)}
    except Forbidden as error:
        raise click.ClickException(
            f"{no_queues(error)} `muster queue top` shows the positions of your own gangs."
        ) from error
    if queue_name not in reports:
        raise click.ClickException(
            f"there is no queue {queue_name!r}; existing queues are: {', '.join(sorted(reports))}"
        )
    print_report(reports[queue_name], queue_lines(reports[queue_name]), output)


def _request(name: str, action: str, text: str) -> click.Command:
    """Return a subcommand of `muster queue`, which creates a Command with this action for each named queue."""

    @click.command(name, help=text)
    @names_argument
    @namespace_option
    @where_options
    def run(*, queue_names: tuple[str, ...], namespace: str | None, where: Where) -> None:
        wanted = [name_of(QUEUES, text) for text in queue_names]
        client, space = connect_in(namespace, where)

        def ask(name: str) -> None:
            uid = get(client, QUEUES, name)["metadata"]["uid"]
            with failing_as(f"ask for {action} of", client, QUEUES, name), known(client, COMMANDS):
                client.create(COMMANDS, command_to(QUEUES, name, uid, action), space, strict=True)
            click.echo(f"{QUEUES.reference(name)}: {action} asked for")

        for_each(wanted, ask)

    return run


_OPENS = "Opens queues, and descendants that were closed with them.\n\nThe request is a Command in the namespace."
_CLOSES = (
    "Closes queues and their descendants for new gangs.\n\n"
    "Gangs in these queues run to their end. The request is a Command in the namespace."
)
for each in (_request("open", "OpenQueue", _OPENS), _request("close", "CloseQueue", _CLOSES), *CHANGES):
    queue.add_command(each)

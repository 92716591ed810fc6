"""`muster logs`: the logs of a gang's pods, for workloads of any kind."""

import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import click

from gangs.members import UnknownGangError, begun, by_rank, container_of, members, named
from gangs.row import GangRow
from gangs.rows import RowSources, rows
from muster.api.grammar import many
from muster.api.kubernetes.core import Pod
from muster.api.muster.states import WAITING
from muster.api.ranges import as_ranges
from muster.kube.client import Client
from muster.kube.errors import APIError
from musterctl import completion
from musterctl.cluster import Failed, Where, connect_in
from musterctl.gangobjects import read
from musterctl.options import namespace_option, where_options, with_options
from musterctl.output.listing import INTERRUPTED

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
MOST_FOLLOWED = 64
"""Maximum number of pods whose logs are followed at once: each log needs a connection and a thread."""


def log_options(command: F) -> F:
    """Add the options that select the pods, the container and the lines of logs."""
    return with_options(
        command,
        click.option("-f", "--follow", is_flag=True, help="Follow each log until the pods have ended."),
        click.option("--rank", type=click.IntRange(min=0), default=0, show_default=True, help="The pod's rank."),
        click.option("--all", "every", is_flag=True, help="Show all pods; each line begins with its pod's name."),
        click.option("-c", "--container", help="The container.  [default: the pod's main one]"),
        click.option("--tail", "last", type=click.IntRange(min=0), help="Show only this number of latest lines."),
    )


@click.command()
@click.argument("gang_name", metavar="[KIND/]NAME", shell_complete=completion.workloads)
@log_options
@namespace_option
@where_options
def logs(*, gang_name: str, namespace: str | None, where: Where, **how: Any) -> None:
    """Prints the logs of a gang's pods, by default the log of rank 0.

    NAME is the name of a workload, as `muster ps` shows it: a Job, TrainJob, JobSet, StatefulSet, Deployment or Pod.
    """
    client, space = connect_in(namespace, where)
    show_logs(client, space, gang_name, **how)


def show_logs(
    client: Client,
    namespace: str,
    name: str,
    *,
    follow: bool,
    rank: int,
    every: bool,
    container: str | None,
    last: int | None,
    kind: str = "",
) -> None:
    """Print the logs of a gang. If the gang has no logs, raise ClickException with the reason."""
    objects = read(client, namespace)
    if objects.pods is None:
        raise click.ClickException(f"you cannot list pods in namespace {namespace}: ask for the role muster-view there")
    try:
        row = _row_named(objects, name, namespace, kind)
        pods = members(objects, row)
        chosen = _chosen(row, pods, rank, every=every)
        sources = [(pod.metadata.name, container_of(pod, container)) for pod in chosen]
    except UnknownGangError as error:
        raise click.ClickException(str(error)) from error
    if follow and len(sources) > MOST_FOLLOWED:
        raise click.ClickException(
            f"{row.title} has {len(sources)} pods with a log, but at most {MOST_FOLLOWED} can be followed at "
            "once: choose a pod with --rank, or omit -f"
        )

    def show(source: tuple[str, str]) -> str:
        """Print one log; return an error message if the log cannot be read."""
        pod, chosen = source
        try:
            for line in client.log_lines(pod, namespace, chosen, follow=follow, last=last):
                click.echo(f"[{pod}] {line}" if every else line)
        except APIError as error:
            return f"the log of pod {pod} cannot be read: {error.message}"
        return ""

    try:
        failed = _together(show, sources) if follow and every else [why for each in sources if (why := show(each))]
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    for why in failed:
        Failed(why).show()
    if failed:
        sys.exit(1)


def _row_named(objects: RowSources, name: str, namespace: str, kind: str) -> GangRow:
    """Return the gang with this name.

    The error for an unknown gang names the command that shows the events of deleted gangs.
    """
    try:
        return named(rows(objects), name, namespace, kind)
    except UnknownGangError as error:
        command = f"`muster history {name.rpartition('/')[2]} -n {namespace}`"
        raise UnknownGangError(
            f"{error}; if it was deleted, its logs are gone, and {command} shows its events"
        ) from error


def _chosen(row: GangRow, pods: Sequence[Pod], rank: int, *, every: bool) -> list[Pod]:
    """Return the requested pods that have a log. If no such pod exists, raise UnknownGangError with the reason."""
    if every and (found := begun(pods)):
        return found
    ranks = by_rank(pods)
    if not every and rank in ranks and begun([ranks[rank]]):
        return [ranks[rank]]
    if not every and rank not in ranks and pods and row.state not in WAITING:
        there = f"{many(len(pods), 'pod')} ({'rank' if len(ranks) == 1 else 'ranks'} {as_ranges(ranks)})"
        raise UnknownGangError(f"{row.title} has {there}, but no pod of rank {rank}: choose another --rank")
    why = f": {row.reason}" if row.reason else ""
    who = "" if every or not pods else f" of rank {rank}"
    raise UnknownGangError(f"{row.title} has no log{who} yet; its state is {row.state}{why}")


def _together(show: Callable[[T], str], sources: Iterable[T]) -> list[str]:
    """Show all logs at the same time until the last pod has ended, and return the errors."""
    failed: list[str] = []
    threads = [threading.Thread(target=lambda one=each: failed.append(show(one)), daemon=True) for each in sources]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [error for error in failed if error]

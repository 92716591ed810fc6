"""`muster history`: the events of gangs, including deleted gangs."""

import time
from collections.abc import Callable
from datetime import datetime

import click
import msgspec
from click.core import ParameterSource

from gangs.words import nodes_text, short
from history.answers import NO_GANGS, GangQuery, silence
from history.read import GangEvent, GangHistory, Outage
from muster.api.volcano.scheduling import QUEUES
from musterctl import completion
from musterctl.cluster import Where, namespace_in
from musterctl.options import all_namespaces_option, namespace_option, records_options, since_option, where_options
from musterctl.output.listing import show_object
from musterctl.output.table import show_rows
from musterctl.records import Source, source_of
from musterctl.users import chosen_user, user_options
from musterctl.webclient import WebServer


@click.command()
@click.argument("name", required=False)
@namespace_option
@all_namespaces_option
@click.option("--queue", shell_complete=completion.names_of(QUEUES), help="Show only gangs of this queue.")
@user_options
@since_option
@click.option("-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True)
@records_options
@where_options
def history(
    *,
    name: str | None,
    namespace: str | None,
    all_namespaces: bool,
    queue: str | None,
    user: str | None,
    mine: bool,
    since_s: float,
    output: str,
    store: str | None,
    server: WebServer | None,
    where: Where,
) -> None:
    """Shows the events of gangs, including deleted gangs.

    Without NAME, the command lists gangs. With NAME, it lists all events of this workload, or the events in the time of
    --since. The page docs/history.md describes the recorded data.
    """
    source = source_of(where, store, server)
    if name is not None:
        if all_namespaces:
            raise click.UsageError("NAME and -A cannot be combined: name the namespace with -n")
        given = click.get_current_context().get_parameter_source("since_s") is not ParameterSource.DEFAULT
        since = time.time() - since_s if given else 0.0
        show_events(source, namespace_in(namespace, where), name, output, since)
        return
    space = None if all_namespaces else namespace_in(namespace, where)
    list_history(source, space, queue, chosen_user(user, where.client, mine=mine), since_s, output)


def list_history(
    source: Source,
    namespace: str | None,
    queue: str | None,
    user: str | None,
    since_s: float,
    output: str,
    *,
    ended: bool | None = None,
) -> None:
    """Print gangs, the most recently submitted first, and then the gaps in the recording."""
    found = source.gangs(
        GangQuery(namespace=namespace, queue=queue, user=user, since=max(0.0, time.time() - since_s), ended=ended)
    )
    if output != "table":
        show_object(msgspec.to_builtins(found), output)
        return
    if not found.gangs:
        click.echo(f"No gangs found in that time{f' in {namespace} namespace' if namespace else ''}.", err=True)
    else:
        columns = _COLUMNS if namespace else [("NAMESPACE", lambda gang: gang.namespace), *_COLUMNS]
        show_rows(columns, found.gangs)
    for gap in found.gaps:
        click.echo(gap_text(gap), err=True)
    report_silence(source, NO_GANGS)


def show_events(source: Source, namespace: str, name: str, output: str, since: float) -> None:
    """Print the events since a time, with a separate table for each workload that has had this name."""
    name = name.rpartition("/")[2]
    events = [each for each in source.events(namespace, name) if each.at >= since]
    if output != "table":
        show_object({"story": msgspec.to_builtins(events)}, output)
        return
    if not events:
        when = f" since {clock(since)}" if since else ""
        there = sorted({each.namespace for each in source.gangs(GangQuery(name=name)).gangs} - {namespace})
        hint = f"; there is one in namespace {', '.join(there)} (-n)" if there else ": `muster history -A` lists others"
        raise click.ClickException(
            f"the history has no record of a workload {name!r} in namespace {namespace}{when}{hint}"
        )
    tables: dict[str, list[GangEvent]] = {}
    for each in events:
        tables.setdefault(_workload_uid(each.gang), []).append(each)
    found = source.gangs(GangQuery(namespace=namespace, name=name)).gangs if len(tables) > 1 else []
    gangs = {_workload_uid(gang.uid): gang for gang in found}
    for number, (uid, rows) in enumerate(tables.items()):
        if gang := gangs.get(uid):
            by = f" by {gang.user}" if gang.user else ""
            title = f"{gang.kind} {gang.name}, submitted {clock(gang.submitted)}{by}: {gang.state}"
            click.echo(f"\n{title}" if number else title)
        show_rows(_EVENT_COLUMNS, rows)
    report_silence(source, NO_GANGS)


def _workload_uid(gang: str) -> str:
    """Return the UID of a gang's workload, which distinguishes workloads with the same name (`RecordedGang.id`)."""
    return gang.split("/")[1] if "/" in gang else gang


def clock(at: float | None) -> str:
    """Return a point in time as local date and time; `-` for None."""
    return "-" if at is None else f"{datetime.fromtimestamp(at).astimezone():%Y-%m-%d %H:%M:%S}"


def gap_text(gap: Outage) -> str:
    """Return the line of output about a gap in the recording."""
    return f"nothing was recorded from {clock(gap.since)} for {short(gap.until - gap.since)}: {gap.text}"


def report_silence(source: Source, what: str) -> None:
    """If the recorder is down, print a warning on standard error; `what` names the data that is missing."""
    if text := silence(source.coverage().looked, time.time(), what, clock):
        click.echo(text, err=True)


_COLUMNS: list[tuple[str, Callable[[GangHistory], str]]] = [
    ("NAME", lambda gang: f"{gang.kind} {gang.name}"),
    ("QUEUE", lambda gang: gang.queue),
    ("USER", lambda gang: gang.user or "-"),
    ("STATE", lambda gang: gang.state),
    ("SUBMITTED", lambda gang: clock(gang.submitted)),
    ("WAITED", lambda gang: gang.waited()),
    ("RAN", lambda gang: gang.ran() or "-"),
    ("RESTARTS", lambda gang: str(gang.restarts)),
    ("EVICTIONS", lambda gang: str(gang.evictions)),
    ("GPU-HOURS", lambda gang: f"{gang.gpu_seconds / 3600:.2f}"),
    ("NODES", lambda gang: nodes_text(gang.nodes)),
]
_EVENT_COLUMNS: list[tuple[str, Callable[[GangEvent], str]]] = [
    ("TIME", lambda one: clock(one.at)),
    ("EPOCH", lambda one: str(one.epoch or "-")),
    ("WHAT", lambda one: one.what),
    ("NODES", lambda one: nodes_text(one.nodes) if one.nodes else "-"),
    ("TEXT", lambda one: one.text),
]

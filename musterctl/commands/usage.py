"""`muster usage`: usage of resources by user, queue, namespace or workload."""

import csv
import sys
import time

import click
import msgspec

from history.answers import NO_USAGE, UsageQuery
from history.usage import KEYS, Seconds, UsageRow, cell, hours
from muster.resources.gpus import is_gpu
from muster.resources.vector import CPU, PODS
from musterctl.cluster import Where
from musterctl.commands.history import report_silence
from musterctl.options import records_options, since_option, where_options
from musterctl.output.listing import show_object
from musterctl.output.table import show_rows
from musterctl.records import source_of
from musterctl.webclient import WebServer

_AMOUNTS = Seconds.__struct_fields__


def _keys(_: click.Context, param: click.Parameter, value: str) -> tuple[str, ...]:
    keys = tuple(filter(None, (each.strip() for each in value.split(","))))
    if wrong := [each for each in keys if each not in KEYS]:
        raise click.BadParameter(f"{wrong[0]!r} is not a key; valid keys are {', '.join(KEYS)}", param=param)
    return keys


@click.command()
@click.option(
    "--by", default="queue,user", show_default=True, callback=_keys, help=f"What rows are of: {', '.join(KEYS)}."
)
@since_option
@click.option("-n", "--namespace", help="Only usage in this namespace.")
@click.option("--queue", help="Only usage in this queue.")
@click.option("-o", "--output", type=click.Choice(["table", "csv", "json", "yaml"]), default="table", show_default=True)
@records_options
@where_options
def usage(
    *,
    by: tuple[str, ...],
    since_s: float,
    namespace: str | None,
    queue: str | None,
    output: str,
    store: str | None,
    server: WebServer | None,
    where: Where,
) -> None:
    """Shows usage by queue, user, namespace or workload, in hours.

    The table shows the GPU-hours, core-hours and GiB-hours that were requested, held, used and lost. The page
    docs/history.md defines these terms.
    """
    asked = UsageQuery(by=by, since=max(0.0, time.time() - since_s), namespace=namespace, queue=queue)
    source = source_of(where, store, server)
    found = source.usage(asked)
    match output:
        case "json" | "yaml":
            show_object({"by": list(by), "unit": "unit-seconds", "rows": msgspec.to_builtins(found)}, output)
        case "csv":
            _csv(by, found)
        case _:
            _table(by, found)
    report_silence(source, NO_USAGE)


def _csv(by: tuple[str, ...], found: list[UsageRow]) -> None:
    writer = csv.writer(sys.stdout)
    writer.writerow([*by, "resource", *(f"{name}_hours" for name in _AMOUNTS)])
    for row in found:
        for resource, amounts in row.resources.items():
            cells = (f"{hours(resource, getattr(amounts, name)):.4f}" for name in _AMOUNTS)
            writer.writerow([*map(cell, row.key), resource, *cells])


def _table(by: tuple[str, ...], found: list[UsageRow]) -> None:
    if not found:
        click.echo("Nothing was requested in that time.", err=True)
        return
    shown = [
        (row.key, resource, amounts)
        for row in found
        for resource, amounts in sorted(row.resources.items(), key=lambda each: _rank(each[0]))
        if resource != PODS
    ]
    keys = [(name.upper(), lambda row, place=place: row[0][place] or "-") for place, name in enumerate(by)]
    columns = [
        (name.upper(), lambda row, name=name: f"{hours(row[1], getattr(row[2], name)):.2f}") for name in _AMOUNTS
    ]
    show_rows([*keys, ("RESOURCE-HOURS", lambda row: row[1]), *columns], shown)


def _rank(resource: str) -> tuple[int, str]:
    """Return a sort key for resources: GPUs first, then cores and memory, then all other resources."""
    return (0 if is_gpu(resource) else 1 if resource == CPU else 2 if resource == "memory" else 3, resource)

"""`muster queue top` and `muster queue explain`: shares of queues, as the planner divides them."""

from collections.abc import Callable

import click

from extender.explain.clusterdump import ClusterDump
from extender.explain.queues import QueueReport, queue_reports
from extender.explain.report import UnknownNameError
from extender.explain.whatif import WhatIf
from musterctl.cluster import reads_cluster
from musterctl.output.queues import queue_lines, top_lines
from musterctl.output.report import print_json


@click.command()
@click.option("--resource", default="", help="The resource to compare by; else what each queue has most of.")
@reads_cluster
def top(
    *,
    resource: str,
    output: str,
    read: Callable[[], ClusterDump],
) -> None:
    """Shows what every queue uses and is due, as bars, and how many gangs wait in it."""
    reports = _reports(WhatIf(read()))
    if output == "json":
        print_json(reports)
    else:
        click.echo("\n".join(top_lines(reports, resource)))


@click.command()
@click.argument("queue_name", metavar="NAME")
@reads_cluster
def explain_queue(
    *,
    queue_name: str,
    output: str,
    read: Callable[[], ClusterDump],
) -> None:
    """Says what one queue has, is due and may have, and why gangs wait in it."""
    reports = {report.queue: report for report in _reports(WhatIf(read()))}
    if queue_name not in reports:
        raise click.ClickException(f"there is no queue {queue_name!r}; there is {', '.join(sorted(reports))}")
    if output == "json":
        print_json(reports[queue_name])
    else:
        click.echo("\n".join(queue_lines(reports[queue_name])))


def _reports(what_if: WhatIf) -> list[QueueReport]:
    try:
        return queue_reports(what_if)
    except UnknownNameError as error:
        raise click.ClickException(str(error)) from error

"""`muster queue top` and `muster queue explain`: shares of queues, as the planner divides them."""

from pathlib import Path

import click

from extender.explain.queues import QueueReport, queue_reports
from extender.explain.report import UnknownNameError
from extender.explain.whatif import WhatIf
from musterctl.cluster import read_dump
from musterctl.options import cluster_options, output_option, snapshot_option
from musterctl.output.queues import queue_lines, top_lines
from musterctl.output.report import print_json


@click.command()
@click.option("--resource", default="", help="The resource to compare by; else what each queue has most of.")
@snapshot_option
@output_option
@cluster_options
def top(
    *,
    resource: str,
    snapshot: Path | None,
    output: str,
    kubeconfig: Path | None,
    name: str | None,
    scheduler_config: Path | None,
) -> None:
    """Shows what every queue uses and is due, as bars, and how many gangs wait in it."""
    dump = read_dump(kubeconfig=kubeconfig, name=name, scheduler_config=scheduler_config, snapshot=snapshot)
    reports = _reports(WhatIf(dump))
    if output == "json":
        print_json(reports)
    else:
        click.echo("\n".join(top_lines(reports, resource)))


@click.command()
@click.argument("queue_name", metavar="NAME")
@snapshot_option
@output_option
@cluster_options
def explain_queue(
    *,
    queue_name: str,
    snapshot: Path | None,
    output: str,
    kubeconfig: Path | None,
    name: str | None,
    scheduler_config: Path | None,
) -> None:
    """Says what one queue has, is due and may have, and why gangs wait in it."""
    dump = read_dump(kubeconfig=kubeconfig, name=name, scheduler_config=scheduler_config, snapshot=snapshot)
    reports = {report.queue: report for report in _reports(WhatIf(dump))}
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

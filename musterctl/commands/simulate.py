"""`muster simulate`: what would happen, changing nothing."""

from collections.abc import Callable, Sequence

import click

from extender.explain.changes import Change, changed
from extender.explain.clusterdump import ClusterDump
from extender.explain.queues import queue_reports
from extender.explain.report import UnknownNameError
from extender.explain.simulation import simulate as run
from extender.explain.whatif import WhatIf
from muster.api.kubernetes.core import INDEXED_JOBS, NAMESPACES, PRIORITY_CLASSES
from muster.api.volcano.scheduling import POD_GROUPS
from musterctl.cluster import reads_cluster
from musterctl.manifests.submission import Submission
from musterctl.options import admission_config_option, namespace_option, recovery_option
from musterctl.output.queues import changed_shares
from musterctl.output.report import print_json, print_lines, simulated_lines
from webhook.config import ResourceGroup, parse


@click.command()
@click.option(
    "-f", "--filename", "files", multiple=True, help="Manifests that would be submitted; - is standard input."
)
@click.option("--add-nodes", type=click.IntRange(min=1), help="So many new nodes …")
@click.option("--like", help="… of the kind of this one.")
@click.option("--cordon", multiple=True, metavar="NODE", help="Nodes that would be cordoned.")
@click.option("--without", multiple=True, metavar="JOB", help="Jobs that would be gone, with their pods.")
@click.option("--queue", "queues", multiple=True, metavar="CHANGE", help="team.deserved.cpu=16, or team.weight=3.")
@namespace_option
@admission_config_option
@recovery_option
@reads_cluster
def simulate(
    *,
    files: tuple[str, ...],
    add_nodes: int | None,
    like: str | None,
    cordon: tuple[str, ...],
    without: tuple[str, ...],
    queues: tuple[str, ...],
    namespace: str,
    admission_config: str | None,
    recovery_s: float,
    output: str,
    read: Callable[[], ClusterDump],
) -> None:
    """Says which gangs would be placed where, and which would wait and why. Changes nothing."""
    if (add_nodes is None) != (like is None):
        raise click.UsageError("--add-nodes and --like go together: how many, and like which node")
    dump = read()
    submission = _read(files, dump, namespace, parse(admission_config or "").resource_groups)
    change = Change(
        namespace,
        without=list(without),
        cordoned=list(cordon),
        queues=list(queues),
        added={like: add_nodes} if like and add_nodes else {},
        new=[(resource, item) for resource, item in submission.items if resource is not INDEXED_JOBS],
    )
    try:
        what_if = WhatIf(changed(dump, change), recovery_s=recovery_s)
        shares = queue_reports(what_if) if queues else []
    except (UnknownNameError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    before = queue_reports(WhatIf(dump, recovery_s=recovery_s)) if queues else []
    gangs_after = run(what_if, [item.metadata.key for resource, item in submission.items if resource is POD_GROUPS])
    if output == "json":
        after = {"queues": shares} if queues else {}
        print_json({"ignored": submission.ignored, "gangs": gangs_after} | after)
    else:
        for line in changed_shares(before, shares):
            click.echo(line)
        print_lines(simulated_lines(gangs_after, submission.ignored))


def _read(files: tuple[str, ...], dump: ClusterDump, namespace: str, groups: Sequence[ResourceGroup]) -> Submission:
    priorities = {item.metadata.name: item.value for item in dump.of(PRIORITY_CLASSES)}
    submission = Submission(namespace, dump.taken_at, priorities, dump.of(NAMESPACES), groups=groups)
    for file in files:
        submission.read(file)
    submission.finish()
    return submission

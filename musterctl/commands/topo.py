"""`muster topo`: the trees of domains that gangs can ask to sit in, and what is free there."""

from pathlib import Path

import click

from extender.explain.find import gang_named
from extender.explain.report import UnknownNameError
from extender.explain.topology import topology_reports
from extender.explain.whatif import WhatIf
from musterctl.cluster import read_dump
from musterctl.options import cluster_options, output_option, snapshot_option
from musterctl.output.report import print_json
from musterctl.output.topology import NONE_LINES, topology_lines


@click.command()
@click.argument("topology_name", metavar="[NAME]", required=False)
@click.option("--gang", default="", metavar="[NAMESPACE/]NAME", help="Shows where the ranks of this gang are.")
@click.option("--resource", "resources", multiple=True, help="Shows this one; may be repeated.  [default: GPUs, cpu]")
@click.option("--nodes", is_flag=True, help="Shows nodes as well.")
@snapshot_option
@output_option
@cluster_options
def topo(
    *,
    topology_name: str | None,
    gang: str,
    resources: tuple[str, ...],
    nodes: bool,
    snapshot: Path | None,
    output: str,
    kubeconfig: Path | None,
    name: str | None,
    scheduler_config: Path | None,
) -> None:
    """Draws the topology of this name, or all of them: what is free, used and fragmented in each domain.

    `hypernodes` is that of HyperNodes, `default` that of the configured levels; Kueue's Topologies have their names.
    """
    dump = read_dump(kubeconfig=kubeconfig, name=name, scheduler_config=scheduler_config, snapshot=snapshot)
    try:
        what_if = WhatIf(dump)
        namespace, _, gang_name = gang.rpartition("/")
        view = gang_named(what_if, gang_name, namespace or "default") if gang else None
        reports = topology_reports(what_if, name=topology_name, resources=resources, gang=view, nodes=nodes)
    except (UnknownNameError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    if output == "json":
        print_json(reports)
        return
    lines = [line for report in reports for line in ("", *topology_lines(report, gang))]
    click.echo("\n".join(lines[1:] or NONE_LINES))

"""`muster topo`: the trees of domains that gangs can ask for, and the free resources there."""

from collections.abc import Callable

import click

from extender.explain.clusterdump import ClusterDump
from extender.explain.find import gang_named
from extender.explain.report import UnknownNameError
from extender.explain.topology import topology_reports
from extender.explain.whatif import WhatIf
from musterctl.options import report_options
from musterctl.output.report import print_json
from musterctl.output.topology import NONE_LINES, topology_lines


@click.command()
@click.argument("topology_name", metavar="[NAME]", required=False)
@click.option("--gang", default="", metavar="[NAMESPACE/]NAME", help="Show the ranks of this gang.")
@click.option(
    "--resource", "resources", multiple=True, help="Show this resource; may be repeated.  [default: GPUs, cpu]"
)
@click.option("--nodes", is_flag=True, help="Show nodes as well.")
@report_options
def topo(
    *,
    topology_name: str | None,
    gang: str,
    resources: tuple[str, ...],
    nodes: bool,
    output: str,
    read: Callable[[], ClusterDump],
) -> None:
    """Draws topologies with the resources of each domain.

    NAME is `hypernodes` for HyperNodes, `default` for the configured levels, or a Topology of Kueue's; without it all
    are drawn. Of each domain the free, used and fragmented resources are shown.
    """
    dump = read()
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

"""`muster nodes`: free GPUs of nodes, by rack and model."""

from collections.abc import Callable
from functools import partial

import click

from gangs.nodes import AlikeRow, NodeRow, alike, node_rows
from gangs.words import nodes_text
from muster.api.kubernetes.core import NODES, PODS
from muster.api.muster.node_faults import rules_in
from muster.api.muster.pools import pool_of
from muster.kube.client import Client
from muster.kube.errors import Forbidden
from muster.resources.vector import CPU, amount_text
from musterctl.chart.roles import VIEW_CLUSTER
from musterctl.cluster import Where
from musterctl.options import table_output_option, where_options
from musterctl.output.listing import Printer
from musterctl.output.table import show_rows
from musterctl.running import published_by, suspects_of

_ALL = 100_000
"""Maximum number of characters of the node names in a line of `-o wide`; large enough for all nodes."""
_LIVING = "status.phase!=Succeeded,status.phase!=Failed"


@click.command()
@click.option("-N", "--each", is_flag=True, help="A line for each node, with its CPUs, memory and pods.")
@click.option("--rack", help="Only nodes of this rack.")
@click.option("--model", help="Only nodes whose GPUs are of this model.")
@table_output_option
@where_options
def nodes(*, each: bool, rack: str | None, model: str | None, output: str, where: Where) -> None:
    """Shows free GPUs of nodes, by rack and model.

    Nodes of the same rack and model with equally many free GPUs share a line. The command needs the right to list nodes
    and pods of the whole cluster; `muster ps` shows the nodes of your own gangs without this right.
    """
    found = [row for row in _read_node_rows(where.client()) if rack in {None, row.rack} and model in {None, row.model}]
    if output in {"table", "wide"} and not found:
        click.echo("No nodes found.", err=True)
    elif output in {"table", "wide"} and not each:
        names = ("NODES", lambda row: nodes_text(row.nodes, _ALL)) if output == "wide" else _NAMES
        show_rows([*_OF_ALIKE, names], alike(found))
    else:
        Printer(
            OF_EACH,
            output,
            names=lambda rows: [f"node/{row.name}" for row in rows],
            together=lambda rows: {"nodes": rows},
        ).show(found)


def _read_node_rows(client: Client) -> list[NodeRow]:
    try:
        there, pods = client.list(NODES), client.list(PODS, field_selector=_LIVING)
    except Forbidden as error:
        raise click.ClickException(
            f"{error.message}: free GPUs require the right to list nodes and pods of the whole cluster; ask an "
            f"administrator for the ClusterRole {VIEW_CLUSTER} in a ClusterRoleBinding. `muster ps` shows the nodes of "
            "your own gangs"
        ) from error
    pools = sorted({pool_of(node.metadata) for node in there})
    suspects = suspects_of(published_by(client, pools), pools)
    return node_rows(there, pods, partial(rules_in, suspects))


def _gpus(row: NodeRow | AlikeRow) -> str:
    return f"{row.free_gpus:g}/{row.gpus:g}" if row.gpus else "-"


_NAMES: tuple[str, Callable[[AlikeRow], str]] = ("NODES", lambda row: nodes_text(row.nodes))
_OF_ALIKE: list[tuple[str, Callable[[AlikeRow], str]]] = [
    ("RACK", lambda row: row.rack or "-"),
    ("MODEL", lambda row: row.model or "-"),
    ("STATE", lambda row: row.state),
    ("COUNT", lambda row: str(len(row.nodes))),
    ("FREE GPUS EACH", _gpus),
]
OF_EACH: list[tuple[str, Callable[[NodeRow], str]]] = [
    ("NAME", lambda row: row.name),
    ("RACK", lambda row: row.rack or "-"),
    ("MODEL", lambda row: row.model or "-"),
    ("STATE", lambda row: row.state),
    ("FREE GPUS", _gpus),
    ("FREE CPU", lambda row: amount_text(CPU, row.free_cpu)),
    ("FREE MEMORY", lambda row: amount_text("memory", row.free_memory)),
    ("PODS", lambda row: str(row.pods)),
]

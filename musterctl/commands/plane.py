"""Commands on a plane that exists: `muster status`, `down`, `kubectl …`."""

import contextlib
import os
import sys

import click
from rich.console import Console
from rich.table import Table

from muster.api.kubeflow.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from muster.api.names import SYSTEM_NAMESPACE
from muster.kube.client import Client
from muster.kube.errors import APIError
from musterctl.cluster import existing
from musterctl.kind.cluster import KindCluster
from musterctl.options import name_option
from musterctl.plane import state
from musterctl.plane.plane import Plane

_STYLES = {"running": "green", "dead": "bold red", "stopped": "yellow"}
_TIMEOUT_S = 3.0
_PASS_THROUGH = {"ignore_unknown_options": True, "allow_interspersed_args": False, "help_option_names": []}


@click.command()
@name_option
def status(name: str) -> None:
    """Shows the parts of a plane.

    If one has died, the exit code is 1, and the tail of its log is shown.
    """
    plane = existing(name)
    console = Console()
    if isinstance(plane, KindCluster):
        show_kind(plane)
        return
    show(plane, console)
    dead = [part for part in plane.parts.values() if part.word == "dead"]
    for part in dead:
        console.print(f"\n{part.death()}", markup=False, highlight=False, soft_wrap=True)
    if dead:
        console.print(f"\n`muster up --name {name}` starts what is dead.", markup=False)
        sys.exit(1)


def show(plane: Plane, console: Console) -> None:
    """Prints the table of parts, where the plane is, and the runtimes for TrainJobs."""
    table = Table("part", "state", "pid", "listens on", box=None, pad_edge=False)
    for part in plane.parts.values():
        row = (f"[{_STYLES[part.word]}]{part.word}[/]", str(part.pid or ""), plane.commandlines.listens(part.name))
        table.add_row(part.name, *row)
    console.print(table)
    console.print(f"folder {plane.root}\nkubeconfig {plane.kubeconfig}", markup=False, highlight=False, soft_wrap=True)
    if plane.attached or plane.part(state.API_SERVER).alive:
        console.print(f"runtimes {_runtimes(plane)}", markup=False, highlight=False, soft_wrap=True)


def show_kind(cluster: KindCluster) -> None:
    """Prints Muster's pods in a kind cluster, and where its kubeconfig is."""
    click.echo(cluster.kubectl("get", "pods", f"--namespace={SYSTEM_NAMESPACE}", "--output=wide").rstrip())
    click.echo(f"kind cluster {cluster.called}\nkubeconfig {cluster.kubeconfig}")


def _runtimes(plane: Plane) -> str:
    """The names of the cluster's runtimes, or why they are not known."""
    try:
        with contextlib.closing(Client.load(plane.kubeconfig, timeout_s=_TIMEOUT_S)) as client:
            found = client.list(CLUSTER_TRAINING_RUNTIMES)
    except APIError as error:
        return f"unknown: {error}"
    return ", ".join(sorted(runtime.metadata.name for runtime in found)) or "none"


@click.command()
@name_option
def down(name: str) -> None:
    """Stops a plane and removes its folder.

    Of a cluster that it was attached to only Muster's processes and webhooks go. A kind cluster is deleted.
    """
    existing(name).remove(report=click.echo)
    click.echo(f"plane {name} is down")


@click.command(context_settings=_PASS_THROUGH, add_help_option=False, options_metavar="[--name NAME]")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def kubectl(arguments: tuple[str, ...]) -> None:
    """Runs kubectl against a plane.

    All arguments are passed on, but for a leading --name.
    """
    name = os.environ.get("MUSTER_NAME", state.DEFAULT_NAME)
    if arguments[:1] == ("--name",) and len(arguments) > 1:
        name, arguments = arguments[1], arguments[2:]
    plane = existing(name)
    os.execv(plane.kubectl_program(), ["kubectl", f"--kubeconfig={plane.kubeconfig}", *arguments])  # noqa: S606 # becomes kubectl

"""Commands for existing local control planes: `muster status`, `restart`, `down` and `kubectl`."""

import contextlib
import os
import sys

import click
from rich.table import Table

from muster.api.kubeflow.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from muster.api.names import SYSTEM_NAMESPACE
from muster.kube.client import Client
from muster.kube.errors import APIError
from musterctl.cluster import existing, only_name
from musterctl.kind.cluster import KindCluster
from musterctl.options import existing_name_option
from musterctl.output.table import console
from musterctl.plane import state
from musterctl.plane.machine import LocalError
from musterctl.plane.plane import Plane
from musterctl.plane.supervisor import restarts

_STYLES = {"running": "green", "not ready": "bold yellow", "dead": "bold red", "stopped": "yellow"}
_TIMEOUT_S = 3.0
_PASS_THROUGH = {"ignore_unknown_options": True, "allow_interspersed_args": False, "help_option_names": []}


@click.command()
@existing_name_option
def status(name: str) -> None:
    """Shows the components of a local control plane.

    The command also shows why one of Muster's processes is not ready. If a component has died, the command shows the
    end of the component's log and exits with code 1.
    """
    plane = existing(name)
    if isinstance(plane, KindCluster):
        show_kind(plane)
        return
    show(plane)
    dead = [part for part in (*plane.parts.values(), plane.supervisor) if part.word == "dead"]
    for part in dead:
        console().print(f"\n{part.death()}", markup=False, highlight=False, soft_wrap=True)
    if dead:
        console().print(f"\n`muster up --name {name}` restarts dead processes.", markup=False)
        sys.exit(1)


def show(plane: Plane) -> None:
    """Print the table of components, the folder of the control plane, and the runtimes for TrainJobs."""
    shown = console()
    table = Table("part", "state", "pid", "listens on", box=None, pad_edge=False)
    troubles = {name: trouble for name in plane.parts if (trouble := plane.trouble(name))}
    for part in plane.parts.values():
        word = "not ready" if part.name in troubles else part.word
        table.add_row(
            part.name, f"[{_STYLES[word]}]{word}[/]", str(part.pid or ""), plane.commandlines.listens(part.name)
        )
    if plane.supervisor.started:
        word = plane.supervisor.word
        table.add_row("supervisor", f"[{_STYLES[word]}]{word}[/]", str(plane.supervisor.pid or ""), "")
    shown.print(table)
    for name, times in restarts(plane.supervisor.log_file, plane.parts).items():
        often = "once" if times == 1 else f"{times} times"
        text = f"{name} ended and was restarted {often}; the reason is in {plane.supervisor.log_file}"
        shown.print(text, markup=False, highlight=False, soft_wrap=True)
    for name, trouble in troubles.items():
        shown.print(f"{name} is not ready: {trouble}", markup=False, highlight=False, soft_wrap=True)
    shown.print(f"folder {plane.root}\nkubeconfig {plane.kubeconfig}", markup=False, highlight=False, soft_wrap=True)
    if plane.attached or plane.part(state.API_SERVER).alive:
        shown.print(f"runtimes {_runtimes(plane)}", markup=False, highlight=False, soft_wrap=True)
    if not plane.attached:
        named = "" if plane.root.name == state.DEFAULT_NAME else f" --name {plane.root.name}"
        shown.print(f"page muster web{named}", markup=False, highlight=False, soft_wrap=True)


def show_kind(cluster: KindCluster) -> None:
    """Print Muster's pods in a kind cluster, and the path of its kubeconfig."""
    click.echo(cluster.kubectl("get", "pods", f"--namespace={SYSTEM_NAMESPACE}", "--output=wide").rstrip())
    click.echo(f"kind cluster {cluster.called}\nkubeconfig {cluster.kubeconfig}")


def _runtimes(plane: Plane) -> str:
    try:
        with contextlib.closing(Client.load(plane.kubeconfig, timeout_s=_TIMEOUT_S)) as client:
            found = client.list(CLUSTER_TRAINING_RUNTIMES)
    except APIError as error:
        return f"unknown: {error}"
    return ", ".join(sorted(runtime.metadata.name for runtime in found)) or "none"


class _Part(click.Choice[str]):
    """Argument type for a component of a local control plane, including the components of node pools."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name of the component, without a check of the node pool, which `Plane.restart` makes."""
        return value if state.pool_of(value) else super().convert(value, param, ctx)


@click.command()
@click.argument("parts", metavar="COMPONENT...", nargs=-1, required=True, type=_Part(state.ALL))
@existing_name_option
def restart(parts: tuple[str, ...], name: str) -> None:
    """Restarts components of a local control plane.

    COMPONENT is a name from `muster status`. Each component is started with the current settings and packages; the
    command returns when all components are ready.
    """
    plane = existing(name)
    if isinstance(plane, KindCluster):
        raise LocalError(
            f"{name} is a kind cluster: `muster kubectl --name {name} rollout restart deployment -n muster-system`"
        )
    for part in dict.fromkeys(parts):
        plane.restart(part)
        click.echo(f"{part} was restarted as process {plane.part(part).pid}")


@click.command()
@existing_name_option
def down(name: str) -> None:
    """Stops a local control plane and removes its folder.

    If Muster is attached to an existing cluster, only Muster's processes and webhooks are removed. A kind cluster is
    deleted.
    """
    existing(name).remove(report=click.echo)
    click.echo(f"plane {name} is down")


@click.command(context_settings=_PASS_THROUGH, add_help_option=False, options_metavar="[--name NAME]")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def kubectl(arguments: tuple[str, ...]) -> None:
    """Runs kubectl against a local control plane.

    All arguments are passed to kubectl, except a leading --name.
    """
    name = os.environ.get("MUSTER_NAME") or only_name()
    if arguments[:1] == ("--name",) and len(arguments) > 1:
        name, arguments = arguments[1], arguments[2:]
    plane = existing(name)
    os.execv(plane.kubectl_program(), ["kubectl", f"--kubeconfig={plane.kubeconfig}", *arguments])  # noqa: S606 # becomes kubectl

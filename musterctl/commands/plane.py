"""Commands on a plane that exists: `muster status`, `down`, `kubectl …`, and `muster config …` for what others run."""

import contextlib
import os
import sys

import click
import yaml
from rich.console import Console
from rich.table import Table

from muster.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from muster.kube.client import Client
from muster.kube.errors import APIError
from musterctl.options import existing, name_option
from musterctl.plane import components, scheduler_config, state
from musterctl.plane.plane import Plane

_STYLES = {"running": "green", "dead": "bold red", "stopped": "yellow"}
_TIMEOUT_S = 3.0
_PASS_THROUGH = {"ignore_unknown_options": True, "allow_interspersed_args": False, "help_option_names": []}


@click.command()
@name_option
def status(name: str) -> None:
    """Shows the parts of a plane; fails, with the tail of its log, if one has died."""
    plane = existing(name)
    console = Console()
    show(plane, console)
    dead = [one for one in plane.status() if one.word == "dead"]
    for one in dead:
        console.print(f"\n{plane.part(one.name).death()}", markup=False, highlight=False, soft_wrap=True)
    if dead:
        console.print(f"\n`muster up --name {name}` starts what is dead.", markup=False)
        sys.exit(1)


def show(plane: Plane, console: Console) -> None:
    """Prints the table of parts, where the plane is, and the runtimes for TrainJobs."""
    table = Table("part", "state", "pid", "listens on", box=None, pad_edge=False)
    for one in plane.status():
        table.add_row(one.name, f"[{_STYLES[one.word]}]{one.word}[/]", str(one.pid or ""), one.url)
    console.print(table)
    console.print(f"folder {plane.root}\nkubeconfig {plane.kubeconfig}", markup=False, highlight=False, soft_wrap=True)
    if plane.attached or any(one.name == components.API_SERVER and one.pid for one in plane.status()):
        console.print(f"runtimes {_runtimes(plane)}", markup=False, highlight=False, soft_wrap=True)


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
    """Stops a plane and removes its folder; of an attached one only what Muster started."""
    existing(name).remove(report=click.echo)
    click.echo(f"plane {name} is down")


@click.command(context_settings=_PASS_THROUGH, add_help_option=False, options_metavar="[--name NAME]")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def kubectl(arguments: tuple[str, ...]) -> None:
    """Runs kubectl against a plane; everything is passed on, but for a leading --name."""
    name = os.environ.get("MUSTER_NAME", state.DEFAULT_NAME)
    if arguments[:1] == ("--name",) and len(arguments) > 1:
        name, arguments = arguments[1], arguments[2:]
    plane = existing(name)
    os.execv(plane.kubectl_program(), ["kubectl", f"--kubeconfig={plane.kubeconfig}", *arguments])  # noqa: S606 # becomes kubectl


@click.group()
def config() -> None:
    """Prints configuration for parts that you run yourself."""


@config.command()
@click.option("--extender-url", help="Where the extender is; by default the plane's, else the default port.")
@click.option("--kubeconfig", default="", help="The scheduler's kubeconfig; without it, it runs in the cluster.")
@click.option(
    "--shared", is_flag=True, help="For the cluster's own scheduler, which asks Muster about marked pods only."
)
@name_option
def scheduler(extender_url: str | None, kubeconfig: str, name: str, *, shared: bool) -> None:
    """Prints the KubeSchedulerConfiguration of a kube-scheduler for Muster's pods."""
    plane = state.load(state.folder_of(name))
    if extender_url is None and plane is not None:
        extender_url = f"http://127.0.0.1:{plane.ports['extender']}"
    make = scheduler_config.shared_scheduler if shared else scheduler_config.muster_scheduler
    content = make(kubeconfig=kubeconfig, extender_url=extender_url or scheduler_config.DEFAULT_EXTENDER_URL)
    click.echo(yaml.safe_dump(content, sort_keys=False), nl=False)

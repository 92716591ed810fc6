"""`muster status`: how the parts of a plane are."""

import sys

import click
from rich.console import Console
from rich.table import Table

from muster.cli.options import existing, name_option
from muster.local.plane import Plane

_STYLES = {"running": "green", "dead": "bold red", "stopped": "yellow"}


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
    """Prints the table of parts, and where the plane is."""
    table = Table("part", "state", "pid", "listens on", box=None, pad_edge=False)
    for one in plane.status():
        table.add_row(one.name, f"[{_STYLES[one.word]}]{one.word}[/]", str(one.pid or ""), one.url)
    console.print(table)
    console.print(f"folder {plane.root}\nkubeconfig {plane.kubeconfig}", markup=False, highlight=False, soft_wrap=True)

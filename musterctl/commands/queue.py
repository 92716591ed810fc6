"""`muster queue`: queues from the command line."""

from pathlib import Path
from typing import Any

import click

from muster.api.volcano.scheduling import POD_GROUPS, QUEUES
from muster.kube.client import Client
from musterctl.cluster import known
from musterctl.commands.jobview import event_lines
from musterctl.commands.queueshares import explain_queue, top
from musterctl.objects import JSON, connect, create, get, name_of, send
from musterctl.output.listing import (
    Column,
    Listing,
    age,
    amounts,
    listing_options,
    namespace_option,
    show_object,
    where_options,
    without_managers,
)


def _shown(quantities: JSON) -> str:
    return ",".join(f"{name}={amount}" for name, amount in quantities.items()) or "-"


COLUMNS = (
    Column("STATE", lambda queue: queue.get("status", {}).get("state", "")),
    Column("PARENT", lambda queue: queue.get("spec", {}).get("parent", "")),
    Column("WEIGHT", lambda queue: queue.get("spec", {}).get("weight", 1)),
    Column("PENDING", lambda queue: queue.get("status", {}).get("pending", 0)),
    Column("INQUEUE", lambda queue: queue.get("status", {}).get("inqueue", 0)),
    Column("RUNNING", lambda queue: queue.get("status", {}).get("running", 0)),
    Column("AGE", age),
    Column("ALLOCATED", lambda queue: _shown(queue.get("status", {}).get("allocated", {})), wide=True),
    Column("DESERVED", lambda queue: _shown(queue.get("spec", {}).get("deserved", {})), wide=True),
    Column("CAPABILITY", lambda queue: _shown(queue.get("spec", {}).get("capability", {})), wide=True),
)


@click.group()
def queue() -> None:
    """Lists, shows, explains, creates, opens and closes queues."""


queue.add_command(top, "top")
queue.add_command(explain_queue, "explain")


@queue.command("list")
@listing_options
@where_options
def list_queues(*, selector: str, output: str, watch: bool, kubeconfig: Path | None, plane: str | None) -> None:
    """Lists queues, their parents and their gangs."""
    Listing(QUEUES, COLUMNS, output).show(connect(kubeconfig, plane), None, selector, watch=watch)


@queue.command()
@click.argument("queue_name", metavar="NAME")
@click.option("-o", "--output", type=click.Choice(["text", "json", "yaml"]), default="text", show_default=True)
@where_options
def view(*, queue_name: str, output: str, kubeconfig: Path | None, plane: str | None) -> None:
    """Shows a queue: its state, its place in the tree, what it may use and uses, its gangs and its events."""
    name = name_of(QUEUES, queue_name)
    client = connect(kubeconfig, plane)
    found = get(client, QUEUES, name)
    if output != "text":
        show_object(without_managers(found), output)
        return
    spec, status = found.get("spec", {}), found.get("status", {})
    below = [each.metadata.name for each in client.list(QUEUES) if each.spec.parent == name]
    for title, value in (
        ("Name", name),
        ("State", status.get("state") or "Open"),
        ("Parent", spec.get("parent") or "-"),
        ("Below", ", ".join(sorted(below)) or "-"),
        ("Weight", spec.get("weight", 1)),
        ("Reclaimable", "no" if spec.get("reclaimable") is False else "yes"),
        ("Capability", _shown(spec.get("capability", {}))),
        ("Deserved", _shown(spec.get("deserved", {}))),
        ("Guarantee", _shown(spec.get("guarantee", {}).get("resource", {}))),
        ("Allocated", _shown(status.get("allocated", {}))),
    ):
        click.echo(f"{title + ':':<13}{value}")
    _show_gangs(client, name)
    for line in event_lines(client, found):
        click.echo(line)


def _show_gangs(client: Client, queue_name: str) -> None:
    with known(client, POD_GROUPS):
        gangs = [group for group in client.list(POD_GROUPS) if group.spec.queue == queue_name]
    click.echo("Gangs:" if gangs else "Gangs: none")
    for group in sorted(gangs, key=lambda group: group.metadata.key):
        click.echo(f"  {group.metadata.key}: {group.status.phase or 'Pending'}, {group.spec.min_member} pods at least")


names_argument = click.argument("queue_names", metavar="NAME...", nargs=-1, required=True)


@queue.command("open")
@names_argument
@namespace_option
@where_options
def open_queue(
    *, queue_names: tuple[str, ...], namespace: str | None, kubeconfig: Path | None, plane: str | None
) -> None:
    """Opens queues, and those below them that were closed with them. The request is made in a namespace."""
    send("OpenQueue", QUEUES, queue_names, namespace, kubeconfig, plane)


@queue.command("close")
@names_argument
@namespace_option
@where_options
def close_queue(
    *, queue_names: tuple[str, ...], namespace: str | None, kubeconfig: Path | None, plane: str | None
) -> None:
    """Closes queues and those below them: nothing new enters, what is in them runs to its end."""
    send("CloseQueue", QUEUES, queue_names, namespace, kubeconfig, plane)


@queue.command("create")
@click.argument("queue_name", metavar="NAME")
@click.option("--parent", default="root", show_default=True)
@click.option("--weight", type=click.IntRange(1, 65535), default=1, show_default=True)
@click.option("--capability", multiple=True, help="The most it may use: cpu=64,nvidia.com/gpu=8.")
@click.option("--deserved", multiple=True, help="Its fair share, in the same form.")
@click.option("--guarantee", multiple=True, help="What no other queue can take, in the same form.")
@click.option("--reclaimable/--not-reclaimable", default=True, help="Whether others may reclaim what it borrowed.")
@where_options
def create_queue(*, queue_name: str, kubeconfig: Path | None, plane: str | None, **options: Any) -> None:
    """Creates a queue below a parent."""
    spec: JSON = {name: options[name] for name in ("parent", "weight", "reclaimable")}
    for name in ("capability", "deserved"):
        given = amounts(options[name], f"--{name}")
        spec |= {name: given} if given else {}
    guarantee = amounts(options["guarantee"], "--guarantee")
    spec |= {"guarantee": {"resource": guarantee}} if guarantee else {}
    content = {"metadata": {"name": name_of(QUEUES, queue_name)}, "spec": spec}
    create(connect(kubeconfig, plane), QUEUES, content)

"""`muster demo`: a new local control plane, three workloads, and a live table of their states.

The demo is also a test: it fails with an error that lists the expected events that did not happen.
"""

import re
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import click
from rich.console import Group
from rich.live import Live
from rich.text import Text

from gangs.nodes import node_rows
from gangs.row import GangRow
from gangs.rows import rows
from muster.api.kubernetes.core import INDEXED_JOBS, NODES, PODS
from muster.api.muster.node_faults import DEFAULT_RULES
from muster.api.muster.states import WAITING
from muster.kube.client import Client
from musterctl.commands import faultdemo
from musterctl.commands.nodes import OF_EACH
from musterctl.gangobjects import read
from musterctl.output.gangtable import Shown, columns
from musterctl.output.table import console as console_of
from musterctl.output.table import drawn
from musterctl.output.terminal import Console
from musterctl.plane.plane import Plane
from musterctl.plane.state import API_SERVER

T = TypeVar("T")
_BESIDE = Path(__file__).resolve().parents[1] / "examples"
"""Folder of the examples in an installed package, where setup.py copies them."""
EXAMPLES = _BESIDE if _BESIDE.is_dir() else Path(__file__).resolve().parents[2] / "examples"
FIRST, SECOND, INDEXED = "torch-first", "torch-second", "torchrun"
NAMESPACE = "default"
_COLUMNS = columns(Shown(NAMESPACE, output="table"))
TIMEOUT_S = 120.0
POLL_S = 0.2
RUN_S = 8
"""Run time of the demo's pods, in seconds. The pods of the original examples run for minutes, so that users can inspect
them."""
_RUN = re.compile(r"(kwok\.muster\.dev/run-seconds: ).*")


class ExpectedEvents:
    """The expected events of the demo, with the evidence for each event that was observed."""

    def __init__(self) -> None:
        self.seen: dict[str, str] = {}
        self._wanted: dict[str, Callable[[dict[str, GangRow]], str]] = {
            f"{FIRST} runs as a whole": lambda rows: _whole(rows, FIRST),
            f"{SECOND} waits with no pod bound and shows the reason": _second_waits,
            f"{INDEXED} (two labels, plain kubectl) runs as a whole": lambda rows: _whole(rows, INDEXED),
            f"{FIRST} completes": lambda rows: _completed(rows, FIRST),
            f"{SECOND} starts as a whole once there is free capacity": lambda rows: (
                _whole(rows, SECOND) if f"{FIRST} runs as a whole" in self.seen else ""
            ),
            f"{SECOND} completes": lambda rows: _completed(rows, SECOND),
        }
        self.broken = ""

    def watch(self, rows: dict[str, GangRow]) -> None:
        """Record the expected events that are visible now, and a failure if the second gang was admitted too early."""
        for sentence, check in self._wanted.items():
            if sentence not in self.seen and (proof := check(rows)):
                self.seen[sentence] = proof
        first, second = rows.get(FIRST), rows.get(SECOND)
        if second and second.nodes and first and first.running == first.minimum:
            self.broken = f"{SECOND} unexpectedly got nodes while {FIRST} was running: {', '.join(second.nodes)}"

    @property
    def missing(self) -> list[str]:
        """The expected events of the demo that have not happened yet."""
        return [sentence for sentence in self._wanted if sentence not in self.seen]


def _whole(rows: dict[str, GangRow], name: str) -> str:
    row = rows.get(name)
    return f"{row.running} of {row.minimum} pods run" if row and row.running >= row.minimum > 0 else ""


def _completed(rows: dict[str, GangRow], name: str) -> str:
    row = rows.get(name)
    return f"it is {row.state}" if row and row.state == "Completed" else ""


def _second_waits(rows: dict[str, GangRow]) -> str:
    first, second = rows.get(FIRST), rows.get(SECOND)
    if not first or not second or first.running < first.minimum:
        return ""
    return second.message if second.state in WAITING and not second.nodes else ""


@click.command()
@click.option("--name", default="demo", show_default=True, help="Name of the local control plane.")
@click.option("--keep", is_flag=True, help="Keep the control plane running, and print further commands.")
@click.option("--faults", is_flag=True, help="Show gangs while a node fails and while a gang is preempted.")
def demo(*, name: str, keep: bool, faults: bool) -> None:
    """Shows a gang from start to end on a local control plane.

    The demo leaves nothing behind; a local control plane that existed before is not changed.
    """
    from musterctl.commands.up import plane_of, start  # noqa: PLC0415 - the plane's modules load only when a plane is wanted

    console = console_of()
    plane = plane_of(name)
    ran = any(part.alive for part in plane.parts.values())
    try:
        start(plane, console)
        client = plane.client()
        _clear(client)
        ok = faultdemo.show(client, console) if faults else _show_gangs(plane, client, console)
    finally:
        if not keep:
            _leave(plane, ran=ran)
    if keep:
        plane.supervisor.start()
        _what_next(name, console)
    else:
        console.print(
            f"\nTo see queues and gangs in a browser: muster demo --keep, then muster web --name {name}",
            highlight=False,
        )
    sys.exit(0 if ok else 1)


def _show_gangs(plane: Plane, client: Client, console: Console) -> bool:
    """Submit the examples and show them until they end; return True if all expected events happened."""
    _submit(plane, console)
    events = _show(client, console)
    _print_environment(client, console)
    return _verdict(events, console)


def _leave(plane: Plane, *, ran: bool) -> None:
    """Restore the previous state: remove a new control plane, or the demo's workloads from an existing control plane.

    An existing control plane is stopped unless it was running before the demo (`ran`).
    """
    if not plane.root.exists():
        return  # it did not start, and was already removed
    if plane.is_new:
        plane.remove()
        return
    if plane.part(API_SERVER).alive:
        with closing(plane.client()) as client:
            _clear(client)
    if not ran:
        plane.stop()


def _clear(client: Client) -> None:
    """Remove the objects of earlier demos from the control plane, and wait until their pods are gone."""
    if any(job.metadata.name == INDEXED for job in client.list(INDEXED_JOBS, NAMESPACE)):
        client.delete(INDEXED_JOBS, INDEXED, NAMESPACE, propagation="Foreground")
    faultdemo.clear(client, {FIRST, SECOND, INDEXED})


def _submit(plane: Plane, console: Console) -> None:
    for file in ("torch-gang.yaml", "torch-gang-second.yaml", "indexed-job.yaml"):
        console.print(f"$ kubectl create -f examples/{file}")
        manifest = _RUN.sub(f'\\1"{RUN_S}"', (EXAMPLES / file).read_text())
        result = plane.kubectl("create", "-f", "-", stdin=manifest)
        console.print((result.stdout or result.stderr).rstrip())
        if result.returncode:
            raise click.ClickException(f"examples/{file} was refused")


def _show(client: Client, console: Console) -> ExpectedEvents:
    """Show live tables until all expected events have happened or time is up; without a terminal, print each change."""
    events, deadline, before = ExpectedEvents(), time.monotonic() + TIMEOUT_S, dict[str, GangRow]()
    with Live(console=console, refresh_per_second=8, transient=False) as live:
        while events.missing and not events.broken and time.monotonic() < deadline:
            objects = read(client, NAMESPACE)
            found = {row.name: row for row in rows(objects)}
            events.watch(found)
            nodes = node_rows(client.list(NODES), objects.pods or (), lambda _: DEFAULT_RULES)
            gangs = _table(_COLUMNS, found.values())
            live.update(Group(_table(OF_EACH, nodes), gangs))
            if not console.is_terminal and found != before:
                console.print(gangs)
            before = found
            time.sleep(POLL_S)
    return events


def _table(columns: Sequence[tuple[str, Callable[[T], str]]], found: Iterable[T]) -> Text:
    """Return tables in the format of `muster nodes` and `muster ps`."""
    cells = [[title for title, _ in columns], *([of(row) for _, of in columns] for row in found)]
    return Text("\n".join([*drawn(cells), ""]))


def _print_environment(client: Client, console: Console) -> None:
    """Print the environment that admission has given to one rank of the plain Job."""
    pods = client.list(PODS, NAMESPACE, label_selector=f"batch.kubernetes.io/job-name={INDEXED}")
    for pod in pods[-1:]:
        console.print(f"\nEnvironment that admission gave to {pod.metadata.name} on {pod.spec.node_name}:")
        for variable in pod.spec.containers[0].env:
            source = (variable.value_from or {}).get("fieldRef", {}).get("fieldPath", "")
            console.print(f"  {variable.name}={variable.value or f'<{source}>'}", highlight=False)


def _verdict(events: ExpectedEvents, console: Console) -> bool:
    console.print()
    for sentence, proof in events.seen.items():
        console.print(f"[green]✓[/] {sentence}: {proof}", highlight=False)
    for sentence in events.missing:
        console.print(f"[red]✗[/] {sentence}: did not happen within {TIMEOUT_S:.0f} s", highlight=False)
    if events.broken:
        console.print(f"[red]✗ {events.broken}[/]")
    return not events.missing and not events.broken


def _what_next(name: str, console: Console) -> None:
    console.print(
        f"\nThe plane stays up. Try:\n"
        f"  muster kubectl --name {name} get vcjob,podgroup,placement,pods\n"
        f"  muster kubectl --name {name} describe podgroup\n"
        f"  muster kubectl --name {name} create -f {EXAMPLES / 'torch-gang.yaml'}\n"
        f"  muster status --name {name}\n"
        f"  muster down --name {name}\n"
        f"\nThe page of its queues and gangs: muster web --name {name}",
        highlight=False,
    )

"""`muster demo`: a plane from nothing, three workloads, and a live table of what happens to them.

It is a check as well: it ends with an error that names what did not happen.
"""

import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table

from muster.api.base import Resource
from muster.api.kubernetes.core import INDEXED_JOBS, NODES, PODS, Pod
from muster.api.muster.gang import gang_of
from muster.api.muster.placement import PLACEMENTS, noted
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.client import Client
from muster.resources.gpus import counted
from muster.resources.pods import node_allocatable
from muster.resources.vector import GPU, amount_words
from musterctl.commands import faultstory
from musterctl.plane.plane import Plane
from musterctl.plane.state import API_SERVER

_BESIDE = Path(__file__).resolve().parents[1] / "examples"
"""setup.py puts them there."""
EXAMPLES = _BESIDE if _BESIDE.is_dir() else Path(__file__).resolve().parents[2] / "examples"
FIRST, SECOND, INDEXED = "torch-first", "torch-second", "torchrun"
NAMESPACE = "default"
TIMEOUT_S = 120.0
POLL_S = 0.2


@dataclass(slots=True)
class Row:
    """One gang in the table: its pods, bound and active, and the reason why it waits."""

    name: str
    gang: str
    phase: str
    minimum: int
    bound: int
    active: int
    """Pods that are bound and have not finished."""
    pods: int
    placement: str
    reason: str


class LiveTable:
    """Reads nodes, pods and gangs of a namespace, and draws them for `muster demo`."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self._rows: dict[str, Row] = {}
        self._pods: list[Pod] = []

    def rows(self) -> dict[str, Row]:
        """Return every gang of the namespace by the name of its workload; a gang that is gone keeps its last row."""
        self._pods = self._client.list(PODS, self._namespace)
        jobs = {job.metadata.name: job.status.state.phase for job in self._client.list(JOBS, self._namespace)}
        placements = {each.metadata.name: each for each in self._client.list(PLACEMENTS, self._namespace)}
        for group in self._client.list(POD_GROUPS, self._namespace):
            owner = group.metadata.controller or next(iter(group.metadata.owner_references), None)
            members = [pod for pod in self._pods if gang_of(pod) == group.metadata.name]
            placement = placements.get(group.metadata.name) or noted(group)
            name = owner.name if owner else group.metadata.name
            self._rows[name] = Row(
                name=name,
                gang=group.metadata.name,
                phase=jobs.get(name) or group.status.phase,
                minimum=group.spec.min_member,
                bound=sum(bool(pod.spec.node_name) for pod in members),
                active=0,
                pods=len(members),
                placement=f"{placement.status.phase} (epoch {placement.spec.epoch})" if placement else "-",
                reason=group.why_waiting,
            )
        for name, row in self._rows.items():
            # A Job that has ended has no PodGroup any more, so its row is brought up to date from what is left.
            row.phase = jobs.get(name) or row.phase
            row.active = sum(_active(pod) for pod in self._pods if gang_of(pod) == row.gang)
        return self._rows

    def table(self, rows: dict[str, Row]) -> Group:
        """Return two tables: the nodes with their pods, and the gangs."""
        return Group(self._nodes(), _gangs(rows))

    @staticmethod
    def line(rows: dict[str, Row]) -> str:
        """Return the gangs in one line, for a console that cannot redraw."""
        return "; ".join(
            f"{row.name}: {row.phase}, {row.bound}/{row.minimum} bound" + (f" ({row.reason})" if row.reason else "")
            for row in rows.values()
        )

    def _nodes(self) -> Table:
        table = Table(title="nodes", title_justify="left")
        for heading in ("node", "rack", "GPUs", "pods"):
            table.add_column(heading)
        for node in sorted(self._client.list(NODES), key=lambda node: node.metadata.name):
            here = [pod for pod in self._pods if pod.spec.node_name == node.metadata.name and not pod.finished]
            used = sum(counted(pod).get(GPU, 0) for pod in here)
            total = node_allocatable(node).get(GPU, 0)
            names = ", ".join(sorted(pod.metadata.name for pod in here))
            rack = node.metadata.labels.get("muster.dev/rack", "")
            table.add_row(node.metadata.name, rack, f"{amount_words(GPU, used)}/{amount_words(GPU, total)}", names)
        return table


def _gangs(rows: dict[str, Row]) -> Table:
    table = Table(title="gangs", title_justify="left")
    for heading in ("workload", "phase", "bound", "pods", "placement", "why it waits"):
        table.add_column(heading, overflow="fold")
    for row in rows.values():
        table.add_row(row.name, row.phase, f"{row.bound}/{row.minimum}", str(row.pods), row.placement, row.reason)
    return table


def _active(pod: Pod) -> bool:
    return bool(pod.spec.node_name) and not pod.finished


class Story:
    """The events of the demo, ticked off as they are seen."""

    def __init__(self) -> None:
        self.seen: dict[str, str] = {}
        self._wanted: dict[str, Callable[[dict[str, Row]], str]] = {
            f"{FIRST} runs whole": lambda rows: _whole(rows, FIRST),
            f"{SECOND} waits with no pod bound and says why": _second_waits,
            f"{INDEXED} (two labels, plain kubectl) runs whole": lambda rows: _whole(rows, INDEXED),
            f"{FIRST} completes": lambda rows: _phase(rows, FIRST, "Completed"),
            f"{SECOND} starts whole once there is room": lambda rows: (
                _whole(rows, SECOND) if f"{FIRST} runs whole" in self.seen else ""
            ),
            f"{SECOND} completes": lambda rows: _phase(rows, SECOND, "Completed"),
        }
        self.broken = ""

    def watch(self, rows: dict[str, Row]) -> None:
        """Ticks off what can be seen at this moment, and notes if the second gang was let in too early."""
        for sentence, check in self._wanted.items():
            if sentence not in self.seen and (proof := check(rows)):
                self.seen[sentence] = proof
        first, second = rows.get(FIRST), rows.get(SECOND)
        if second and second.bound and first and first.active == first.minimum:
            self.broken = f"{second.bound} pods of {SECOND} were bound while {FIRST} ran"

    @property
    def missing(self) -> list[str]:
        """The sentences of the story that have not come true yet."""
        return [sentence for sentence in self._wanted if sentence not in self.seen]


def _whole(rows: dict[str, Row], name: str) -> str:
    row = rows.get(name)
    return f"{row.bound} of {row.minimum} pods bound" if row and row.active >= row.minimum > 0 else ""


def _phase(rows: dict[str, Row], name: str, phase: str) -> str:
    row = rows.get(name)
    return f"phase {phase}" if row and row.phase == phase else ""


def _second_waits(rows: dict[str, Row]) -> str:
    first, second = rows.get(FIRST), rows.get(SECOND)
    if not first or not second or first.bound < first.minimum:
        return ""
    return second.reason if second.bound == 0 else ""


@click.command()
@click.option("--name", default="demo", show_default=True, help="Name of the plane.")
@click.option("--keep", is_flag=True, help="Leave the plane running and say what to try next.")
@click.option("--faults", is_flag=True, help="Show what becomes of gangs when a node dies and when one is preempted.")
def demo(*, name: str, keep: bool, faults: bool) -> None:
    """Shows a gang from submission to completion on a local plane.

    It leaves nothing behind: a plane that was there before is as it was.
    """
    from musterctl.commands.up import plane_of, start  # noqa: PLC0415 - the plane's modules load only when a plane is wanted

    console = Console()
    plane = plane_of(name)
    ran = any(part.alive for part in plane.parts.values())
    try:
        start(plane, console)
        client = plane.client()
        _clear(client)
        faultstory.clear(client)
        ok = faultstory.tell(client, console) if faults else _gangs_story(plane, client, console)
    finally:
        if not keep:
            _leave(plane, ran=ran)
    if keep:
        _what_next(name, console)
    else:
        console.print(
            f"\nTo see queues and gangs in a browser: muster demo --keep, then muster web --name {name}",
            highlight=False,
        )
    sys.exit(0 if ok else 1)


def _gangs_story(plane: Plane, client: Client, console: Console) -> bool:
    """Submits the examples and shows them to their end; True if all came true."""
    _submit(plane, console)
    story = _show(client, console)
    _print_environment(client, console)
    return _verdict(story, console)


def _leave(plane: Plane, *, ran: bool) -> None:
    """Leaves what was there before: no plane, or one without the demo's workloads that runs if it `ran`."""
    if not plane.root.exists():
        return  # it did not start, and is gone already
    if plane.is_new:
        plane.remove()
        return
    if plane.part(API_SERVER).alive:
        with closing(plane.client()) as client:
            _clear(client)
            faultstory.clear(client)
    if not ran:
        plane.stop()


def _clear(client: Client) -> None:
    """Removes what a demo left in this plane, and waits until it is gone."""
    jobs: list[tuple[Resource[Any], str]] = [(JOBS, FIRST), (JOBS, SECOND), (INDEXED_JOBS, INDEXED)]
    for resource, name in jobs:
        if any(job.metadata.name == name for job in client.list(resource, NAMESPACE)):
            client.delete(resource, name, NAMESPACE, propagation="Foreground")
    deadline = time.monotonic() + TIMEOUT_S
    names = {name for _, name in jobs}
    while any(owner.name in names for pod in client.list(PODS, NAMESPACE) for owner in pod.metadata.owner_references):
        if time.monotonic() > deadline:
            raise click.ClickException("pods of a demo are not going away; try `muster down --name demo`")
        time.sleep(POLL_S)


def _submit(plane: Plane, console: Console) -> None:
    for file in ("torch-gang.yaml", "torch-gang-second.yaml", "indexed-job.yaml"):
        console.print(f"$ kubectl create -f examples/{file}")
        result = plane.kubectl("create", "-f", str(EXAMPLES / file))
        console.print((result.stdout or result.stderr).rstrip())
        if result.returncode:
            raise click.ClickException(f"examples/{file} was refused")


def _show(client: Client, console: Console) -> Story:
    """The live table, until everything has happened or the time is up."""
    story, live_table = Story(), LiveTable(client, NAMESPACE)
    deadline = time.monotonic() + TIMEOUT_S
    told = ""
    with Live(console=console, refresh_per_second=8, transient=False) as live:
        while story.missing and not story.broken and time.monotonic() < deadline:
            rows = live_table.rows()
            story.watch(rows)
            live.update(live_table.table(rows))
            if not console.is_terminal and (text := live_table.line(rows)) != told:
                told = text
                console.print(text)
            time.sleep(POLL_S)
    return story


def _print_environment(client: Client, console: Console) -> None:
    """The environment of one rank of the plain Job, as admission made it."""
    pods = client.list(PODS, NAMESPACE, label_selector=f"batch.kubernetes.io/job-name={INDEXED}")
    for pod in pods[-1:]:
        console.print(f"\nEnvironment that admission gave to {pod.metadata.name} on {pod.spec.node_name}:")
        for variable in pod.spec.containers[0].env:
            source = (variable.value_from or {}).get("fieldRef", {}).get("fieldPath", "")
            console.print(f"  {variable.name}={variable.value or f'<{source}>'}", highlight=False)


def _verdict(story: Story, console: Console) -> bool:
    console.print()
    for sentence, proof in story.seen.items():
        console.print(f"[green]✓[/] {sentence}: {proof}", highlight=False)
    for sentence in story.missing:
        console.print(f"[red]✗[/] {sentence}: did not happen within {TIMEOUT_S:.0f} s", highlight=False)
    if story.broken:
        console.print(f"[red]✗ {story.broken}[/]")
    return not story.missing and not story.broken


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

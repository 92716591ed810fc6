"""A table of nodes and gangs, from the objects of the API server, for `muster demo`."""

from dataclasses import dataclass

from rich.console import Group
from rich.table import Table

from muster.api.kubernetes.core import NODES, PODS, Pod
from muster.api.muster.gang import gang_of
from muster.api.muster.placement import PLACEMENTS, noted
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.client import Client
from muster.resources.gpus import counted
from muster.resources.pods import node_allocatable
from muster.resources.vector import GPU, amount_words


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
            members = [pod for pod in self._pods if gang_of(pod.metadata) == group.metadata.name]
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
            row.active = sum(_active(pod) for pod in self._pods if gang_of(pod.metadata) == row.gang)
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

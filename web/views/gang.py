"""The page of one gang: its state and reason, changes that let it start, its events, members and Kubernetes Events.

Pure. All input comes from one namespace, which the caller may read.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from urllib.parse import quote

from msgspec import Struct

from extender.explain.report import GangReport
from extender.explain.text import TextLine, lines_of
from gangs.members import begun
from gangs.row import GangRow
from gangs.words import plain, ranks_text
from muster.api.kubernetes.core import Event, Pod
from muster.api.kubernetes.meta import readable_time
from muster.api.kubernetes.pod_problems import deletion_began, failure, problem
from muster.api.muster.gang import DEFAULT_POD_SET
from muster.api.muster.noderuns import slots_of
from muster.api.muster.placement import Placement
from muster.api.muster.states import ENDED
from muster.api.ranges import natural
from muster.api.volcano.scheduling import PodGroup
from muster.workloads.table import slot_of
from web.views.gangs import GangLine, address, line
from web.views.parts import ListPart, Moment, moment, part_of

MEMBERS = 200
"""Number of members on one page; the map shows the nodes of all members."""
EVENTS = 50
"""Maximum number of Events on the page; the latest ones are shown."""
_MOST_CHARS = 1_000
"""Maximum length of an Event's text, which other programs write."""
NODES = 400
"""Maximum number of nodes that are drawn; further nodes are only counted."""
NO_RACK = ""


class NodeOfGang(Struct, frozen=True):
    """A node with members of the gang, or with slots that are planned for them."""

    name: str
    ranks: str
    """The ranks on the node by pod set, as text, such as `worker 0-7`."""
    members: int
    running: int
    state: str
    """State of the members on the node: runs, starts, reserved or ended."""


class RackOfNodes(Struct, frozen=True):
    """One rack."""

    name: str
    """Name of the rack; empty for nodes without a known rack."""
    nodes: list[NodeOfGang]
    members: int
    more: int
    """Number of nodes that are not drawn."""


def racks(
    pods: Sequence[Pod], placement: Placement | None, state: str, rack_of_node: Mapping[str, str]
) -> list[RackOfNodes]:
    """Return the racks of a gang's nodes, sorted by name; if no pod has a node, the racks of its planned nodes."""
    ranks: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    running: dict[str, int] = defaultdict(int)
    for pod in pods:
        node = pod.spec.node_name
        if node:
            slot = slot_of(pod.metadata)
            place = slot.pod_set if slot else DEFAULT_POD_SET
            ranks[node][place].add(slot.rank if slot else len(ranks[node][place]))
            running[node] += pod.status.phase == "Running"
    if placement is not None and state not in ENDED and placement.status.phase != "Abandoned":
        for slot, node in slots_of(placement):
            ranks[node][slot.pod_set].add(slot.rank)
    by_rack: dict[str, list[str]] = defaultdict(list)
    for node in ranks:
        by_rack[rack_of_node.get(node, NO_RACK)].append(node)
    found, left = [], NODES
    for rack in sorted(by_rack, key=natural):
        names = sorted(by_rack[rack], key=natural)
        drawn = [_node(name, ranks[name], running[name], state) for name in names[:left]]
        left -= len(drawn)
        members = sum(len(numbers) for name in names for numbers in ranks[name].values())
        found.append(RackOfNodes(rack, drawn, members, len(names) - len(drawn)))
    return found


def _node(name: str, ranks: Mapping[str, set[int]], running: int, state: str) -> NodeOfGang:
    numbers_by_set = {pod_set: sorted(numbers) for pod_set, numbers in sorted(ranks.items())}
    how = "ended" if state in ENDED else "reserved" if state == "Reserved" else "runs" if running else "starts"
    return NodeOfGang(name, ranks_text(numbers_by_set), sum(map(len, numbers_by_set.values())), running, how)


class GangStep(Struct, frozen=True):
    """An event in the life of the gang, such as its start."""

    at: Moment | None
    what: str
    text: str
    epoch: int = 0
    """Epoch of the placement to which the event belongs; 0 if there is no placement."""
    nodes: str = ""


class MemberLine(Struct, frozen=True):
    """One member."""

    rank: str
    """Pod set and rank of the member, such as `worker 3`."""
    pod: str
    node: str
    state: str
    since: Moment | None
    problem: str
    log: str
    """Address of the member's log; empty if there is no log."""


class EventLine(Struct, frozen=True):
    """One Event."""

    at: Moment | None
    kind: str
    reason: str
    about: str
    message: str
    count: int


class Button(Struct, frozen=True):
    """An action that the caller may take; its link leads to a confirmation page."""

    name: str
    title: str
    address: str


class GangPage(Struct, frozen=True):
    """The page."""

    line: GangLine
    message: str
    user: str
    """The user who created the workload; empty if unknown."""
    epoch: int
    lines: list[TextLine]
    help: list[str]
    steps: list[GangStep]
    racks: list[RackOfNodes]
    members: list[MemberLine]
    part: ListPart
    """The displayed part of the list of members."""
    events: list[EventLine] | None
    """Kubernetes Events about the gang; None if the caller is not allowed to list Events."""
    buttons: list[Button]
    explained: str
    """Address of the page that searches for changes that would let the gang start; empty if this page already shows
    all."""


class GangObjects(Struct, frozen=True):
    """The known objects of one gang; a field is None or empty if its objects are unreadable or do not exist."""

    row: GangRow
    group: PodGroup | None = None
    placement: Placement | None = None
    pods: Sequence[Pod] = ()
    """The members in rank order, from `gangs.members.members`."""
    events: Sequence[Event] | None = None
    report: GangReport | None = None
    happened: Sequence[GangStep] | None = None
    """Events of the gang: from the history if there is one, otherwise derived from the objects."""
    user: str = ""
    buttons: Sequence[Button] = ()
    logs: bool = False
    """True if the caller may read logs."""
    explained: bool = False
    """True if the caller may request an explanation by the planner."""


def gang_view(
    of: GangObjects, rack_of_node: Mapping[str, str], now: float, *, page: int = 1, name: str = ""
) -> GangPage:
    """Return the content of one gang's page; `name` is the name in the page's address.

    `rack_of_node` is empty if the caller is not allowed to list nodes. The map of the gang's nodes then shows no racks.
    """
    here = f"/gangs/{quote(of.row.namespace, safe='')}/{quote(name, safe='')}" if name else address(of.row)
    shown, part = part_of(of.pods, MEMBERS, page, lambda number: f"{here}?page={number}#members")
    lines = lines_of(of.report, now) if of.report else []
    return GangPage(
        line=line(of.row, now),
        message=plain(of.row.message),
        user=of.user,
        epoch=of.placement.spec.epoch if of.placement else 0,
        lines=[replace(each, text=plain(each.text)) for each in lines if each.label != "would help"],
        help=[plain(each.sentence) for each in of.report.relief] if of.report else [],
        steps=list(_steps(of, now)) if of.happened is None else list(of.happened),
        racks=racks(of.pods, of.placement, of.row.state, rack_of_node),
        members=[_member(pod, rank, here, now, logs=of.logs) for rank, pod in enumerate(shown, part.first - 1)],
        part=part,
        events=None if of.events is None else _events(of.events, now),
        buttons=list(of.buttons),
        explained=f"{here}/explain" if of.explained else "",
    )


def _steps(of: GangObjects, now: float) -> Iterable[GangStep]:
    """Yield the events that can be derived from the gang's objects, oldest first; events without a time come last."""
    found = [
        GangStep(moment(of.row.created, now), "submitted", f"{of.row.title} was submitted to queue {of.row.queue}")
    ]
    if of.group is not None:
        for each in of.group.status.conditions:
            if each.status == "True":
                what = "started" if each.type == "Scheduled" else "waits"
                found.append(GangStep(moment(each.last_transition_time, now), what, plain(each.message or each.reason)))
    found += _of_placement(of.placement, now) if of.placement else []
    found += _of_pods(of.pods, now)
    if of.row.state in ENDED:
        found.append(GangStep(_ended(of.pods, now), "ended", plain(of.row.message) or f"it is {of.row.state}"))
    return sorted(found, key=lambda step: (step.at is None, step.at.at if step.at else ""))


def _of_placement(placement: Placement, now: float) -> Iterable[GangStep]:
    status, epoch = placement.status, placement.spec.epoch
    if status.phase == "Reserved":
        text = plain(status.message) or "nodes are reserved for it"
        yield GangStep(moment(status.reserved_at, now), "reserved", text, epoch)
        if expected := moment(status.expected_at, now):
            yield GangStep(expected, "expected", "it is expected to start", epoch)
        return
    if started := moment(status.started_at, now):
        yield GangStep(started, "whole", "all pods that start together had their nodes", epoch)
    else:
        text = f"placement {epoch} is {status.phase}" + (f": {plain(status.message)}" if status.message else "")
        yield GangStep(moment(placement.metadata.creation_timestamp, now), "planned", text, epoch)


def _of_pods(pods: Sequence[Pod], now: float) -> Iterable[GangStep]:
    times = sorted(at for pod in pods if (at := readable_time(pod.status.start_time)) is not None)
    if times:
        yield GangStep(moment(times[0], now), "first pod", "the first of its pods started")
        if len(times) > 1 and times[-1] > times[0]:
            yield GangStep(moment(times[-1], now), "last pod", f"the last of {len(times)} pods started")


def _ended(pods: Sequence[Pod], now: float) -> Moment | None:
    times = [
        at
        for pod in pods
        for each in pod.status.container_statuses
        if each.state.terminated and (at := readable_time(each.state.terminated.finished_at)) is not None
    ]
    return moment(max(times, default=None), now)


def _member(pod: Pod, rank: int, here: str, now: float, *, logs: bool) -> MemberLine:
    slot, hindered, deleted_at = slot_of(pod.metadata), problem(pod) or failure(pod), deletion_began(pod.metadata)
    return MemberLine(
        rank=f"{slot.pod_set} {slot.rank}" if slot else "",
        pod=pod.metadata.name,
        node=pod.spec.node_name,
        state="Terminating" if deleted_at else pod.status.phase or "Pending",
        since=moment(deleted_at or pod.status.start_time or pod.metadata.creation_timestamp, now),
        problem=plain(hindered.words) if hindered else "",
        log=f"{here}/logs/{rank}" if logs and begun([pod]) else "",
    )


def _events(events: Sequence[Event], now: float) -> list[EventLine]:
    latest = sorted(
        events, key=lambda event: event.last_timestamp or event.metadata.creation_timestamp or "", reverse=True
    )
    return [
        EventLine(
            moment(event.last_timestamp or event.metadata.creation_timestamp, now),
            "Warning" if event.type == "Warning" else "Normal",
            plain(event.reason)[:_MOST_CHARS],
            plain(f"{event.involved_object.get('kind', '')} {event.involved_object.get('name', '')}"),
            plain(event.message)[:_MOST_CHARS],
            max(1, event.count),
        )
        for event in latest[:EVENTS]
    ]

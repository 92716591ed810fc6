"""The page of one gang, and the map of where it is."""

import msgspec
from page_world import NOW, member, reserved, row

from muster.api.kubernetes.core import Event
from web.views.gang import EVENTS, MEMBERS, NODES, Button, GangObjects, gang_view, racks
from web.views.parts import ListPart

RACKS = {"node-0": "rack-a", "node-1": "rack-a", "node-2": "rack-b"}


def test_the_map_has_racks_nodes_and_ranks() -> None:
    """Ranks of a node are one text."""
    pods = [member("w0", 0, "node-0"), member("w1", 1, "node-0"), member("w2", 2, "node-2")]
    found = racks(pods, None, "Running", RACKS)
    assert [(rack.name, [(node.name, node.ranks, node.state) for node in rack.nodes]) for rack in found] == [
        ("rack-a", [("node-0", "worker 0-1", "runs")]),
        ("rack-b", [("node-2", "worker 2", "runs")]),
    ]


def test_reserved_nodes_are_on_the_map() -> None:
    """As what they are: nothing runs there."""
    [rack] = racks([], reserved("ours", "g", "node-0", "node-1"), "Reserved", RACKS)
    assert [(node.name, node.state) for node in rack.nodes] == [("node-0", "reserved"), ("node-1", "reserved")]


def test_an_ended_gang_is_not_where_its_placement_was() -> None:
    """Its nodes are others' by now."""
    assert racks([], reserved("ours", "g", "node-0"), "Completed", RACKS) == []


def test_of_very_many_nodes_some_are_drawn() -> None:
    """The others are counted."""
    pods = [member(f"w{number}", number, f"n-{number}") for number in range(NODES + 7)]
    [rack] = racks(pods, None, "Running", {})
    assert (len(rack.nodes), rack.more, rack.members) == (NODES, 7, NODES + 7)


def test_members_have_their_logs() -> None:
    """Those that have begun, and only for who may read logs."""
    pods = [member("w0", 0, "node-0"), member("w1", 1, phase="Pending")]

    def logs(*, may: bool) -> list[str]:
        of = GangObjects(row("train", state="Running"), pods=pods, logs=may)
        return [each.log for each in gang_view(of, RACKS, NOW).members]

    assert logs(may=True) == ["/gangs/ours/train/logs/0", ""]
    assert logs(may=False) == ["", ""]


def test_many_members_come_in_parts() -> None:
    """Their ranks go on counting."""
    of = GangObjects(row(), pods=[member(f"w{number}", number, "node-0") for number in range(MEMBERS + 5)], logs=True)
    view = gang_view(of, {}, NOW, page=2)
    assert [each.rank for each in view.members] == [f"worker {MEMBERS + number}" for number in range(5)]
    assert view.members[0].log == f"/gangs/ours/train/logs/{MEMBERS}"
    assert view.part == ListPart(MEMBERS + 1, 5, MEMBERS + 5, "/gangs/ours/train?page=1#members", "")


def test_a_gang_that_is_called_otherwise_keeps_its_name() -> None:
    """Its links lead back to the address that was asked for."""
    of = GangObjects(row("set"), buttons=[Button("delete", "Delete", "/act")], explained=True)
    view = gang_view(of, {}, NOW, name="set-0")
    assert (view.explained, view.buttons[0].address) == ("/gangs/ours/set-0/explain", "/act")


def test_the_timeline_is_in_order() -> None:
    """From its submission on; a reservation's expected start is at its end."""
    steps = gang_view(GangObjects(row(state="Reserved"), placement=reserved("ours", "g", "node-0")), {}, NOW).steps
    assert [(step.what, step.epoch) for step in steps] == [("submitted", 0), ("reserved", 3), ("expected", 3)]


def test_the_end_of_a_gang_is_that_of_its_last_container() -> None:
    """And says how it ended."""
    state = {"terminated": {"exitCode": 1, "finishedAt": "2027-01-15T07:50:00Z"}}
    over = {"containerStatuses": [{"name": "main", "state": state}]}
    of = GangObjects(row(state="Failed", message="1 pod failed"), pods=[member("w0", 0, "n", "Failed", status=over)])
    last = gang_view(of, {}, NOW).steps[-1]
    assert last.at is not None
    assert (last.what, last.text, last.at.at) == ("ended", "1 pod failed", "2027-01-15T07:50:00Z")


def test_events_are_the_latest_on_one_line_each() -> None:
    """What somebody writes into them cannot make the page long, or act on anything."""
    told = [
        msgspec.convert(
            {
                "metadata": {"name": f"e{number}"},
                "lastTimestamp": f"2027-01-15T07:{number:02d}:00Z",
                "type": "Warning",
                "message": f"line {number}\nof\x1b[31m red " + "x" * 5000,
            },
            Event,
        )
        for number in range(EVENTS + 3)
    ]
    events = gang_view(GangObjects(row(), events=told), {}, NOW).events
    assert events is not None
    assert len(events) == EVENTS
    assert events[0].message.startswith(f"line {EVENTS + 2} of [31m red")
    assert len(events[0].message) <= 1000


def test_events_that_may_not_be_listed_are_not_no_events() -> None:
    """The page says so."""
    assert gang_view(GangObjects(row()), {}, NOW).events is None

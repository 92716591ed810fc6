"""Queues: their states, Commands to them, and what they count."""

import random
from typing import Any

import pytest
from builders import queue as a_queue
from msgspec import to_builtins
from simulated_cluster import Cluster
from simulated_faults import Faults

from controller.queues.rules import WantedState, asked, at_rest
from muster.api.kubernetes.core import PODS
from muster.api.kubernetes.scheduling import NATIVE_POD_GROUPS
from muster.api.muster.native import conditions_of
from muster.api.volcano.batch import COMMANDS, JOBS
from muster.api.volcano.scheduling import (
    POD_GROUPS,
    QUEUES,
    PodGroupPhase,
    PodGroupStatus,
    Queue,
)

OPEN, CLOSED, CLOSING = (WantedState(state, by_parent=False) for state in ("Open", "Closed", "Closing"))  # type: ignore[arg-type]
MARKED_CLOSED, MARKED_CLOSING = WantedState("Closed", by_parent=True), WantedState("Closing", by_parent=True)


def queue(state: str, *, marked: bool = False, name: str = "q") -> Queue:
    """A queue in this state."""
    annotations = {"volcano.sh/closed-by-parent": "true"} if marked else {}
    return a_queue(name, state=state, parent="p", annotations=annotations)


@pytest.mark.parametrize(
    ("state", "marked", "above", "busy", "wanted"),
    [
        ("", False, "Open", False, OPEN),
        ("Open", False, "Open", True, OPEN),
        ("Open", False, "Closed", False, MARKED_CLOSED),
        ("Open", False, "Closing", True, MARKED_CLOSING),
        ("Closing", True, "Closed", True, MARKED_CLOSING),
        ("Closing", True, "Closed", False, MARKED_CLOSED),
        ("Closed", True, "Open", False, OPEN),
        ("Closing", True, "Open", True, OPEN),
        ("Closed", False, "Open", False, CLOSED),
        ("Closed", False, "Closed", False, CLOSED),
        ("Closed", False, "Open", True, CLOSED),  # as a client wrote it
        ("Closing", False, "Open", True, CLOSING),
        ("Closing", False, "Open", False, CLOSED),
        ("Unknown", False, "Open", False, WantedState("Unknown", by_parent=False)),
    ],
)
def test_state_at_rest(state: str, marked: bool, above: str, busy: bool, wanted: WantedState) -> None:  # noqa: FBT001 - columns of the table
    """What follows from the queue, its mark, its parent and its gangs."""
    assert at_rest(queue(state, marked=marked), queue(above, name="p"), busy=busy) == wanted


def test_root_is_always_open() -> None:
    """Whoever closed it."""
    assert at_rest(queue("Closed", name="root"), None, busy=False) == OPEN
    assert "cannot be closed" in str(asked("CloseQueue", queue("Open", name="root"), None, busy=False))


@pytest.mark.parametrize(("action", "state", "above", "busy", "wanted"), [
    ("CloseQueue", "Open", "Open", False, CLOSED),
    ("CloseQueue", "Open", "Open", True, CLOSING),
    ("CloseQueue", "Closed", "Open", False, CLOSED),
    ("OpenQueue", "Closed", "Open", False, OPEN),
    ("OpenQueue", "Closing", "Open", True, OPEN),
    ("OpenQueue", "Unknown", "Open", False, OPEN),
    ("OpenQueue", "Closed", "Closing", False, "while its parent p is Closing"),
    ("Dance", "Open", "Open", False, "unknown action 'Dance'"),
])  # fmt: skip
def test_commands(action: str, state: str, above: str, busy: bool, wanted: Any) -> None:  # noqa: FBT001 - columns of the table
    """What an action leads to, or why it does not."""
    found = asked(action, queue(state), queue(above, name="p"), busy=busy)
    assert found == wanted or (isinstance(found, str) and wanted in found)


@pytest.fixture
def cluster() -> Cluster:
    """A cluster in which nothing fails, with queue `p` and, below it, `q`."""
    chance = random.Random(1)  # noqa: S311 - not a secret
    one = Cluster(chance, Faults(chance, 0.0, 0.0), lambda *_: None)
    one.api.add(QUEUES, {"metadata": {"name": "p"}, "spec": {"weight": 1}})
    one.api.add(QUEUES, {"metadata": {"name": "q"}, "spec": {"parent": "p"}})
    assert one.converge()
    return one


def state(cluster: Cluster, name: str) -> str:
    """The queue's state, with a star where that is its parent's doing."""
    found = cluster.api.find(QUEUES, name)
    return found.status.state + ("*" if found.metadata.annotations else "")


def command(cluster: Cluster, action: str, name: str, uid: str = "") -> None:
    """A Command, and all that follows from it."""
    found = cluster.api.find(QUEUES, name)
    target = {"apiVersion": QUEUES.api_version, "kind": "Queue", "name": name, "uid": uid or found.metadata.uid}
    cluster.api.add(COMMANDS, {"metadata": {"generateName": "c-"}, "action": action, "target": target}, "n")
    assert cluster.converge()
    assert not cluster.api.all(COMMANDS)


def test_parents_take_their_children_along(cluster: Cluster) -> None:
    """Closed and opened with the parent; a child that was closed for itself stays closed."""
    assert (cluster.api.find(QUEUES, "p").spec.parent, state(cluster, "q")) == ("root", "Open")
    command(cluster, "CloseQueue", "p")
    assert (state(cluster, "p"), state(cluster, "q")) == ("Closed", "Closed*")
    command(cluster, "OpenQueue", "q")
    assert state(cluster, "q") == "Closed*"
    command(cluster, "OpenQueue", "p")
    assert (state(cluster, "p"), state(cluster, "q")) == ("Open", "Open")
    command(cluster, "CloseQueue", "q")
    command(cluster, "CloseQueue", "p")
    command(cluster, "OpenQueue", "p")
    assert (state(cluster, "p"), state(cluster, "q")) == ("Open", "Closed")
    command(cluster, "OpenQueue", "q")
    for closed in ("p", "q"):
        command(cluster, "CloseQueue", closed)
    command(cluster, "OpenQueue", "p")
    assert (state(cluster, "p"), state(cluster, "q")) == ("Open", "Closed"), "closed for itself after its parent"


def test_a_capability_limits_the_queues_below(cluster: Cluster) -> None:
    """Members above the minimum of their gangs are created in steps."""
    assert not cluster.controller.queues.limited("q")
    cluster.api.merge_patch(QUEUES, "p", {"spec": {"capability": {"cpu": "4"}}})
    assert cluster.converge()
    assert [cluster.controller.queues.limited(name) for name in ("p", "q", "root")] == [True, True, False]


def test_a_client_writes_the_state(cluster: Cluster) -> None:
    """Closed by hand it stays closed, and its children with it; the root opens again."""
    for name in ("p", "root"):
        cluster.api.change(QUEUES, name, {"status": {"state": "Closed"}}, subresource="status")
    assert cluster.converge()
    assert [state(cluster, name) for name in ("root", "default", "p", "q")] == ["Open", "Open", "Closed", "Closed*"]


@pytest.mark.parametrize(("change", "at_once"), [
    ({"status": {"pending": 3}}, False),
    ({"status": {"state": "Closed"}}, True),
    ({"spec": {"weight": 3}}, True),
    ({"metadata": {"annotations": {"a": "b"}}}, True),
])  # fmt: skip
def test_a_queue_whose_counters_changed_is_counted_later(
    cluster: Cluster, change: dict[str, Any], *, at_once: bool
) -> None:
    """These are most likely its own: once in half a second is enough."""
    queues, old = cluster.controller.queues, cluster.api.find(QUEUES, "q")
    new = cluster.api.change(QUEUES, "q", change, subresource="status" if "status" in change else "")
    queues._seen(old, new)
    assert (queues.worker.queue.get(0) == "q") is at_once
    cluster.now_s += 0.5
    assert queues.worker.queue.get(0) == (None if at_once else "q")


def test_commands_that_lead_to_nothing_are_dropped(cluster: Cluster) -> None:
    """To an earlier queue of the name, for the root, or a word that nobody knows."""
    command(cluster, "CloseQueue", "q", uid="earlier")
    command(cluster, "CloseQueue", "root")
    command(cluster, "Dance", "q")
    assert (state(cluster, "root"), state(cluster, "q")) == ("Open", "Open")


@pytest.mark.parametrize(("api_version", "kind", "why"), [
    (QUEUES.api_version, "Queue", "there is no queue gone"),
    (JOBS.api_version, "Job", "there is no Job gone in namespace n"),
    ("batch/v1", "Job", "its target must be a Job of batch.volcano.sh, or a Queue of scheduling.volcano.sh"),
    ("", "", "its target must be a Job"),
])  # fmt: skip
def test_a_command_without_a_target_ends_with_an_event(cluster: Cluster, api_version: str, kind: str, why: str) -> None:
    """Of its own, as there is no other object; the Command is deleted."""
    events: list[tuple[str, str, str]] = []
    cluster.controller._recorder.event = lambda obj, _type, reason, message: events.append(  # type: ignore[method-assign]
        (f"{obj.kind} {obj.metadata.name}", reason, message)
    )
    target = {"target": {"apiVersion": api_version, "kind": kind, "name": "gone", "uid": "1"}} if kind else {}
    meta = {"name": "c"}
    cluster.api.add(
        COMMANDS,
        {"apiVersion": COMMANDS.api_version, "kind": "Command", "metadata": meta, "action": "AbortJob", **target},
        "n",
    )
    assert cluster.converge()
    assert not cluster.api.all(COMMANDS)
    assert not cluster.controller.queues._commands, "users may name any number of queues"
    [(about, reason, message)] = events
    assert (about, reason) == ("Command c", "CommandIssued")
    assert message.startswith(why)


def test_closing_waits_for_gangs_and_counts_them(cluster: Cluster) -> None:
    """Closing while there are gangs, Closed when the last has gone or completed; what pods ask for adds up the tree."""
    cluster.api.add(POD_GROUPS, {"metadata": {"name": "g"}, "spec": {"minMember": 1, "queue": "q"}}, "n")
    containers = [{"name": "c", "resources": {"requests": {"cpu": "500m", "nvidia.com/gpu": "2"}}}]
    spec = {"schedulerName": "volcano", "containers": containers}
    meta = {"name": "pod", "annotations": {"scheduling.k8s.io/group-name": "g"}}
    cluster.api.add(PODS, {"metadata": meta, "spec": spec}, "n")
    assert cluster.converge()
    for name in ("q", "p", "root"):
        status = cluster.api.find(QUEUES, name).status
        assert status.allocated == {"cpu": "500m", "memory": "0", "nvidia.com/gpu": "2", "pods": "1"}
    assert cluster.api.find(QUEUES, "q").status.running == 1
    assert cluster.api.find(QUEUES, "p").status.running == 0
    command(cluster, "CloseQueue", "q")
    assert state(cluster, "q") == "Closing"
    cluster.restart()
    assert cluster.converge()
    assert state(cluster, "q") == "Closing"
    cluster.api.remove(PODS, cluster.api.find(PODS, "pod", "n"), at_once=True)
    cluster.api.change(POD_GROUPS, "g", {"status": {"phase": "Completed"}}, "n")
    cluster.deliver(everything=True)
    cluster.now_s += 1
    cluster.work(50)
    status = cluster.api.find(QUEUES, "q").status
    assert (status.state, status.completed, status.allocated) == ("Closed", 1, {"cpu": "0", "memory": "0"})


def told(cluster: Cluster, phase: PodGroupPhase, queue: str) -> None:
    """The planner says the phase and the queue of native PodGroup `theirs`, and the controller counts."""
    conditions = conditions_of(PodGroupStatus(phase=phase), [], cluster.now_s, queue=queue)
    body = {"status": {"conditions": [to_builtins(each) for each in conditions]}}
    cluster.api.change(NATIVE_POD_GROUPS, "theirs", body, "n", subresource="status")
    assert cluster.converge()


def test_native_gangs_are_counted_where_the_planner_has_them(cluster: Cluster) -> None:
    """By phase, as those of other PodGroups; one of which the planner says nothing is nobody's, and is not counted."""

    def counts(name: str) -> dict[str, int]:
        status = cluster.api.find(QUEUES, name).status
        every = {key: getattr(status, key) for key in ("pending", "inqueue", "running", "completed", "unknown")}
        return {key: count for key, count in every.items() if count}

    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    cluster.api.add(NATIVE_POD_GROUPS, {"metadata": {"name": "theirs"}, "spec": spec}, "n")
    assert cluster.converge()
    assert (counts("q"), counts("default")) == ({}, {})
    told(cluster, "Inqueue", "q")
    assert (counts("q"), counts("p")) == ({"inqueue": 1}, {})
    command(cluster, "CloseQueue", "q")
    assert state(cluster, "q") == "Closing"
    told(cluster, "Running", "q")
    assert counts("q") == {"running": 1}
    told(cluster, "Running", "p")
    assert (counts("q"), counts("p"), state(cluster, "q")) == ({}, {"running": 1}, "Closed")
    told(cluster, "Completed", "p")
    assert counts("p") == {"completed": 1}
    cluster.api.remove(NATIVE_POD_GROUPS, cluster.api.find(NATIVE_POD_GROUPS, "theirs", "n"), at_once=True)
    assert cluster.converge()
    assert counts("p") == {}

"""Whom a pod is charged to: planner, recorder and controller say the same of every pod on a node."""

from typing import Any

import pytest
from builders import pod as a_pod
from extender_world import World
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert, to_builtins

from controller.queues.rules import RequestsByQueue
from history import members
from history.entries import Entries
from history.pods import ObservationTime, RecordedPod
from muster.api import names
from muster.api.kubernetes.core import Pod
from muster.workloads.charges import charged_queue

LABELS = {names.QUEUE: "research", names.QUEUE_NAME: "volcano", names.MANAGED: "false", names.GANG: "gang"}
MARKERS = dict.fromkeys(names.MARKERS, "1")


def pod(scheduler: str, labels: dict[str, str], limits: dict[str, str], **more: Any) -> Pod:
    """A pod on a node."""
    made = a_pod("lone", uid="uid-lone", node="node-0", labels=labels, **more)
    made.spec.scheduler_name = scheduler
    made.spec.containers[0].resources.limits |= limits
    return made


@given(
    st.sampled_from(["muster", "volcano", "default-scheduler", "", "muster-b"]),
    st.sets(st.sampled_from([*LABELS])),
    st.booleans(),
    st.booleans(),
)
def test_all_charge_a_pod_to_the_same_queue(scheduler: str, keys: set[str], marked: bool, noted: bool) -> None:  # noqa: FBT001
    """Or to none, whatever it is labelled with: pods that another scheduler places are charged to nobody."""
    annotations = {names.VOLCANO_QUEUE: "noted"} if noted else {}
    one = pod(scheduler, {key: LABELS[key] for key in keys}, MARKERS if marked else {}, annotations=annotations)
    queue = charged_queue(one)
    world, entries = World().nodes(1), Entries()
    if scheduler != "muster-b":  # the planner of another pool
        world.state.on_pod(None, one)
        assert (world.state.ledger.entries["uid-lone"].queue or None) == queue
    recorded = convert(to_builtins(one), RecordedPod)
    recorded.status.phase = "Running"
    members.pod(entries, recorded, ObservationTime(1_800_000_000_000, live=True))
    assert [each.queue for each in entries.holdings.values()] == ([] if queue is None else [queue])
    requests = RequestsByQueue(lambda _: None)
    requests.pod_seen(one, gone=False)
    assert [*requests._queues] == ([] if queue is None else [queue])


@pytest.mark.parametrize("gone", [names.MANAGED, names.QUEUE])
def test_a_pod_of_another_scheduler_books_nothing(gone: str) -> None:
    """A label of a queue is a wish, which nobody has checked."""
    labels = {names.QUEUE: "theirs", names.MANAGED: "false"}
    del labels[gone]
    assert charged_queue(pod("default-scheduler", labels, {"nvidia.com/gpu": "100000000"})) is None

"""Reports as data; `extender.explain.text` puts them into words for a terminal."""

from collections.abc import Collection
from difflib import get_close_matches
from typing import Literal

from msgspec import Struct

from extender.planner.reasons.room import Shortage
from muster.api.muster.placement import AvoidedNode, NodeRun
from muster.api.muster.reason import Reason
from muster.api.muster.states import State

GangCause = Literal[
    "finished", "failed", "running", "running-extras-wait", "members-hindered", "members-lost", "starting",
    "placement-failed", "half-placed", "about-to-start", "queue-missing", "queue-closed", "queue-not-for-namespace",
    "queue-of-other-pool", "never-fits", "too-few-pods", "pods-not-created", "pods-not-bound",
    "other-gates", "no-room", "no-domain", "strict-order", "in-flight-limit", "no-pod-group", "not-considered",
]  # fmt: skip
PodCause = Literal[
    "finished", "failed", "running", "bound", "hindered", "lost", "terminating", "other-scheduler", "no-gang",
    "gang-missing", "gated", "other-gates", "old-epoch", "newer-epoch", "wrong-pin", "refused", "not-tried",
]  # fmt: skip


class GangQueueReport(Struct, frozen=True, rename="camel"):
    """The queue, and the gang's position among those that wait, from 1; 0 if it does not wait."""

    name: str
    state: str
    """Empty if it does not exist, or may not be read."""
    place: int
    waiting: int
    """Gangs that wait in it; 0 if that may not be read."""
    overall_place: int
    overall_waiting: int
    ahead: tuple[str, ...]
    """The gangs that are tried just before it, at most three."""
    place_words: str = ""
    """The place as it is known: `3`, or `21-30`."""


class PodSetReport(Struct, frozen=True, rename="camel"):
    """Slots of one pod set by their state."""

    name: str
    replicas: int
    minimum: int
    requests: dict[str, str]
    each: str
    """The requests in words."""
    bound: int
    done: int
    held: int
    """Placed slots: their pods have no node yet."""
    gated: int
    pinned: int
    failed: int
    """Slots of pods that have failed and are still there."""
    leaving: int
    """Slots of pods that are being deleted; their owner fills them again when these are gone."""
    missing: int
    """Slots that the owner may fill but has not created a pod for."""
    ungated: int = 0
    """Pods without a node and without Muster's gate or a pin: behind other gates, or without any."""


class PlacementReport(Struct, frozen=True, rename="camel"):
    """The placement of a gang, and the time left to carry it out."""

    epoch: int
    phase: str
    deadline: str
    left_s: float
    """Seconds until the deadline, or of a reservation until it is expected to begin; negative afterwards."""
    message: str
    pod_sets: dict[str, list[NodeRun]]
    """Nodes in rank order."""
    expected_at: str = ""
    """Expected start of the gang on the nodes that are reserved for it (RFC 3339); empty if unknown."""
    why: Reason | None = None
    """The message as data, if there are any."""


class Relief(Struct, frozen=True, rename="camel"):
    """Something that would let the gang start. Tried on the planner's own cycle unless `tried` is false."""

    kind: Literal[
        "ends", "uncordon", "tolerate", "add-nodes", "recovers", "queue", "pods", "wait", "frees", "wider", "nothing"
    ]
    sentence: str
    names: tuple[str, ...] = ()
    """The gangs, nodes or taints it is about."""
    tried: bool = True


class GangReport(Struct, frozen=True, rename="camel"):
    """One gang: cause, in words and in numbers, and what would help."""

    gang: str
    workload: str
    """Its owner, `Job ns/name`; empty if it has none."""
    state: State
    """As in `muster ps`."""
    phase: str
    job_phase: str
    cause: GangCause
    reason: str
    """As in the PodGroup's condition; empty if the gang does not wait."""
    summary: str
    since: str
    """Time of its last condition (RFC 3339); empty if unknown."""
    min_member: int
    members: int
    """Members that have a node, or are done."""
    queue: GangQueueReport
    pod_sets: list[PodSetReport]
    placement: PlacementReport | None = None
    shortage: Shortage | None = None
    avoided: list[AvoidedNode] = []
    nodes: list[str] = []
    """Its nodes in words: `worker: node-0 (2), node-1`."""
    details: list[str] = []
    relief: list[Relief] = []
    message: str = ""
    """The reason why it waits, as in the PodGroup's condition; for a gang that does not wait, the summary."""
    expected_start: str = ""
    """To the minute (RFC 3339), as the PodGroup says it; empty if unknown."""
    whole: bool = True
    """False if its reader may not list the cluster: the report then relies on the gang's own objects."""


class PodReport(Struct, frozen=True, rename="camel"):
    """One pod: its slot, gate and pin, kube-scheduler's words, and its gang."""

    pod: str
    cause: PodCause
    summary: str
    scheduler: str
    node: str = ""
    slot: str = ""
    """Pod set and rank: `worker 3`."""
    gates: list[str] = []
    pin: str = ""
    epoch: int | None = None
    scheduler_says: str = ""
    """kube-scheduler's own words, from the pod's condition PodScheduled."""
    since: str = ""
    shortage: Shortage | None = None
    gang: GangReport | None = None
    relief: list[Relief] = []
    """Ways to end the deletion of a pod without a gang; a gang has them in its report."""


class UnknownNameError(Exception):
    """There is no such object; the message names what there is."""


def near_names(name: str, known: Collection[str]) -> str:
    """Return the names nearest to one that does not exist, else the first ones; empty if there are none."""
    return ", ".join(get_close_matches(name, known, cutoff=0.4) or sorted(known)[:5])

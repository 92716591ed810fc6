"""Reports as data; `extender.explain.text` formats them for a terminal."""

from collections.abc import Collection
from difflib import get_close_matches
from typing import Literal

from msgspec import Struct

from extender.planner.reasons.shortages import Shortage
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
    """A gang's queue, and the gang's position among the waiting gangs, counted from 1; 0 if the gang does not wait."""

    name: str
    state: str
    """State of the queue; empty if the queue does not exist or the user is not allowed to read it."""
    place: int
    waiting: int
    """Number of gangs that wait in the queue; 0 if the user is not allowed to read the queue."""
    overall_place: int
    overall_waiting: int
    ahead: tuple[str, ...]
    """The gangs directly ahead of this gang in scheduling order, at most three."""
    place_words: str = ""
    """The gang's position in the queue as text, exact or as a range, such as `3` or `21-30`."""


class PodSetReport(Struct, frozen=True, rename="camel"):
    """The number of a pod set's slots in each state."""

    name: str
    replicas: int
    minimum: int
    requests: dict[str, str]
    each: str
    """The requests of each pod, as text."""
    bound: int
    done: int
    held: int
    """Number of placed slots whose pods are not bound yet."""
    gated: int
    pinned: int
    failed: int
    """Number of slots whose pods have failed and still exist."""
    leaving: int
    """Number of slots whose pods are being deleted; the owner creates new pods once the old pods are gone."""
    missing: int
    """Number of slots for which the owner may create pods but has not done so."""
    ungated: int = 0
    """Number of pods that have no node, no pin, and not Muster's gate; these pods may have other gates."""


class PlacementReport(Struct, frozen=True, rename="camel"):
    """The placement of a gang, and the time left until its deadline."""

    epoch: int
    phase: str
    deadline: str
    left_s: float
    """Seconds until the placement's deadline or the reservation's expected start; negative after that."""
    message: str
    pod_sets: dict[str, list[NodeRun]]
    """Maps a pod set to its nodes in rank order."""
    expected_at: str = ""
    """Expected start of the gang on its reserved nodes (RFC 3339); empty if unknown."""
    why: Reason | None = None
    """The reason with data from which the message was written; None if these data are unavailable."""


class Relief(Struct, frozen=True, rename="camel"):
    """A change that would let the gang start, tested in a cycle of the planner unless `tried` is False."""

    kind: Literal[
        "ends", "uncordon", "tolerate", "add-nodes", "recovers", "queue", "pods", "wait", "frees", "wider", "nothing"
    ]
    sentence: str
    names: tuple[str, ...] = ()
    """Names of the gangs, nodes or taints in the sentence."""
    tried: bool = True


class GangReport(Struct, frozen=True, rename="camel"):
    """The report of one gang: why the gang waits, as text and in numbers, and changes that would let it start."""

    gang: str
    workload: str
    """Owner of the gang as `Job ns/name`; empty if the gang has no owner."""
    state: State
    """The gang's state, as in the output of `muster ps`."""
    phase: str
    job_phase: str
    cause: GangCause
    reason: str
    """The reason in the PodGroup's condition; empty if the gang does not wait."""
    summary: str
    since: str
    """Time of the gang's last condition (RFC 3339); empty if unknown."""
    min_member: int
    members: int
    """Number of members that are bound to nodes or have succeeded."""
    queue: GangQueueReport
    pod_sets: list[PodSetReport]
    placement: PlacementReport | None = None
    shortage: Shortage | None = None
    avoided: list[AvoidedNode] = []
    nodes: list[str] = []
    """The gang's nodes as text: `worker: node-0 (2), node-1`."""
    details: list[str] = []
    relief: list[Relief] = []
    message: str = ""
    """The message in the PodGroup's condition if the gang waits; otherwise the summary."""
    expected_start: str = ""
    """Expected start of the gang, rounded to a minute (RFC 3339), from the PodGroup; empty if unknown."""
    whole: bool = True
    """False if the user is not allowed to list the cluster; the report is then based only on the gang's own objects."""


class PodReport(Struct, frozen=True, rename="camel"):
    """The report of one pod: its slot, gates, pin and message from kube-scheduler, and the report of the pod's gang."""

    pod: str
    cause: PodCause
    summary: str
    scheduler: str
    node: str = ""
    slot: str = ""
    """Pod set and rank of the pod, such as `worker 3`."""
    gates: list[str] = []
    pin: str = ""
    epoch: int | None = None
    scheduler_says: str = ""
    """kube-scheduler's message, from the pod's condition PodScheduled."""
    since: str = ""
    shortage: Shortage | None = None
    gang: GangReport | None = None
    relief: list[Relief] = []
    """Ways to finish the deletion of a pod without a gang; for a member of a gang, the gang's report lists the ways."""


class UnknownNameError(Exception):
    """Raised if the named object does not exist; the message lists existing names."""


def near_names(name: str, known: Collection[str]) -> str:
    """Return the known names that are similar to an unknown name, or, if there is none, the first known names."""
    return ", ".join(get_close_matches(name, known, cutoff=0.4) or sorted(known)[:5])

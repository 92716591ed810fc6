"""Inputs of cycles that are not stored in any object of the cluster: timing, and short-lived memory of the planner.

The extender publishes these inputs together with its configuration, so that other planners plan with the same inputs.
Published values are not trusted: unusable values are left out, with a message that names the error.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from extender.planner.actions.progress import AVOID_S
from extender.planner.framework.session import Session
from extender.planner.timing import DEFAULTS, Timing, timing_of
from muster.api.muster.configuration import AVOIDED, MEMORY, TIMING
from muster.api.muster.gang import Slot
from muster.api.muster.placement import AvoidedNode, holds_back

T = TypeVar("T")
Refusals = dict[str, dict[str, float]]
"""Maps a gang and a node to the time until which the gang avoids the node, because the node rejected a member."""
Failures = dict[str, tuple[AvoidedNode, ...]]
"""Maps a gang to the nodes on which its members failed."""
MOST_BYTES: Final = 128 * 1024
"""Maximum size of the planner's published memory, in bytes. Larger memory is not published, because a ConfigMap may
have at most 1 MiB."""


class Memory(Struct, frozen=True, omit_defaults=True):
    """Short-lived memory of a planner's process, which changes with every cycle."""

    arrived: dict[str, tuple[Slot, ...]] = {}
    """Maps the UID of a gang to the slots of its members that wait at the barrier."""
    avoided: Refusals = {}
    gone: tuple[str, ...] = ()
    """Deleted nodes that still have members of gangs."""


class PublishedInputs(Struct, frozen=True, omit_defaults=True):
    """The inputs that an extender has published in addition to the configuration; missing inputs have defaults."""

    timing: Timing = DEFAULTS
    memory: Memory = Memory()
    failures: Failures = {}


def still_avoided(avoided: Mapping[str, Mapping[str, float]], now: float) -> Refusals:
    """Return the nodes that each gang still avoids at this time."""
    left = {key: {node: until for node, until in nodes.items() if until > now} for key, nodes in avoided.items()}
    return {key: nodes for key, nodes in left.items() if nodes}


def avoided_after(session: Session) -> Refusals:
    """Return the nodes that each gang avoids in the next cycle after a refusal, even if no Placement was written."""
    found = {key: dict(nodes) for key, nodes in session.inputs.avoided.items()}
    for key, nodes in session.avoided.items():
        for node in nodes - session.failed_on.get(key, set()):
            found.setdefault(key, {}).setdefault(node, session.now + AVOID_S)
    return found


def memory_of(session: Session) -> Memory:
    """Return the part of the planner's memory that can change a decision of the next cycle."""
    came = session.inputs.arrived
    holding = (gang for gang in session.snapshot.gangs if gang.uid in came) if came else ()
    arrived = {
        gang.uid: tuple(sorted(came[gang.uid])) for gang in holding if gang.placement and holds_back(gang.placement)
    }
    return Memory(arrived, avoided_after(session), tuple(sorted(session.inputs.gone)))


def timing_text(timing: Timing) -> dict[str, str]:
    """Return the key and the text under which the published ConfigMap contains the timing."""
    return {TIMING: msgspec.json.encode(timing).decode()}


def memory_text(memory: Memory) -> dict[str, str]:
    """Return the key and the text under which the published ConfigMap contains the memory."""
    text = msgspec.json.encode(memory)
    return {MEMORY: text.decode() if len(text) <= MOST_BYTES else "{}"}


def published_inputs(data: Mapping[str, str]) -> tuple[PublishedInputs, list[str]]:
    """Parse a published ConfigMap, with defaults for missing values; also return a sentence for each unusable value."""
    problems: list[str] = []
    timing, wrong = timing_of(_decoded(data, TIMING, dict[str, Any], {}, problems))
    memory = _decoded(data, MEMORY, Memory, Memory(), problems)
    failures: Failures = _decoded(data, AVOIDED, Failures, {}, problems)
    return PublishedInputs(timing, memory, failures), [*problems, *wrong]


def _decoded(data: Mapping[str, str], key: str, shape: Any, default: T, problems: list[str]) -> T:
    text = data.get(key)
    try:
        return msgspec.json.decode(text, type=shape) if text else default
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        problems.append(f"{key} cannot be parsed and is ignored: {error}")
        return default

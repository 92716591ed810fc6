"""The format of a recording: one JSON object per line, distinguished by its field `is`. Pure.

Objects are those of the API server with only the fields that the planner reads (`explain.clusterdump.scrubbed`), so
that they are as free of secrets as a file of `muster snapshot`.
"""

import re
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from extender.explain.clusterdump import kind_name, scrubbed
from extender.planner.state.feed import FEED
from muster.api.base import Resource
from muster.api.kubernetes.autoscaling import PROVISIONING_REQUESTS
from muster.api.muster.usage import PublishedUsage

FORMAT: Final = "muster-recording/v1"
RESOURCES: Final[dict[str, Resource[Any]]] = {
    kind_name(resource): resource for resource in (*(fed.resource for fed in FEED), PROVISIONING_REQUESTS)
}
"""The kinds of a recording, as kubectl calls them."""


class RecordLine(Struct, tag_field="is", omit_defaults=True, rename="camel", kw_only=True):
    """Common fields of all lines; `at` is in seconds since the epoch."""

    at: float = 0.0


class Head(RecordLine, tag="head"):
    """The first line of a file."""

    format: str
    version: str = ""
    """Of the Muster that recorded."""
    session: str = ""
    """Another one for each start of the process: what the planner remembers does not outlive it."""
    number: int = 0
    """Counts the files of a session."""
    pool: str = ""
    config: str = ""
    """Text of the scheduler configuration; empty: the defaults."""
    settings: dict[str, Any] = {}
    """Settings of the extender that the planner gets."""
    planner: bool = True
    """False: recorded without a planner (`muster record`), so that there are no decisions."""


class KnownLine(RecordLine, tag="known"):
    """An object that exists when the file begins. `Put` is one that came or changed since."""

    kind: str
    object: Raw


class ObjectsEndLine(RecordLine, tag="whole"):
    """The end of the objects with which a file begins: those that were known before and are not among them are gone."""


class Put(RecordLine, tag="put"):
    """An object that came or changed."""

    kind: str
    object: Raw
    own: bool = False
    """The planner's own write, recorded before the watch reports it."""


class GoneLine(RecordLine, tag="gone"):
    """An object that is gone."""

    kind: str
    key: str
    own: bool = False


class Bound(RecordLine, tag="bound"):
    """A pod that Muster has bound, before the watch reports it."""

    uid: str
    node: str
    devices: tuple[int, ...] = ()


class ConfigLine(RecordLine, tag="config"):
    """Another scheduler configuration is used from the next cycle on."""

    text: str


class SnapshotLine(RecordLine, tag="look"):
    """The planner has copied its state for a cycle: later changes count for the next one."""


class Cycle(RecordLine, tag="cycle"):
    """The cycle on the copy of the last `SnapshotLine`: its time in `at`, inputs of no watch, and decisions."""

    arrived: dict[str, list[tuple[str, int]]] = {}
    """Gang UID → slots of members that wait for the others at the barrier."""
    avoided: dict[str, dict[str, float]] | None = None
    """Gang key → node that refused a member of it → end of that time; None: recorded by an older version."""
    gone: list[str] = []
    """Nodes that do not exist any more."""
    served: bool | None = None
    """True if the cluster has ProvisioningRequests."""
    usage: PublishedUsage | None = None
    """Past usage of queues, where one of them has a budget."""
    decided: list[tuple[str, ...]] = []
    """As `record.words` has them."""


class Lost(RecordLine, tag="lost"):
    """Changes that came faster than they could be written: the next file begins with all known objects."""

    changes: int
    since: float = 0.0


class EndLine(RecordLine, tag="end"):
    """The end of a file that was closed in order; without it the process was killed, or still writes."""

    why: str = ""


AnyLine = (
    Head | KnownLine | ObjectsEndLine | Put | GoneLine | Bound | ConfigLine | SnapshotLine | Cycle | Lost | EndLine
)

_VERSION = re.compile(rb',"resourceVersion":"[^"]*"')
_encode = msgspec.json.Encoder().encode
_decoder: msgspec.json.Decoder[AnyLine] = msgspec.json.Decoder(AnyLine)
_of_kind = {name: msgspec.json.Decoder(resource.type) for name, resource in RESOURCES.items()}


def encoded(line: AnyLine) -> bytes:
    """Return the line as JSON, without its end."""
    return _encode(line)


def decoded(text: bytes) -> AnyLine:
    """Read a line. Raises msgspec.DecodeError if it is none; its ValidationError: none of this version's."""
    return _decoder.decode(text)


def packed(item: Any) -> Raw:
    """Return the text of an object with only the fields that the planner reads."""
    return Raw(_encode(scrubbed(item)))


def alike(one: Raw, other: Raw) -> bool:
    """Return True if two texts of objects differ in nothing but their resourceVersion."""
    return _VERSION.sub(b"", bytes(one), count=1) == _VERSION.sub(b"", bytes(other), count=1)


def unpacked(kind: str, text: Raw) -> Any:
    """Return the object of a text."""
    return _of_kind[kind].decode(text)

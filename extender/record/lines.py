"""Format of a recording: one JSON object per line; the field `is` names the kind of line.

Recorded objects have only the fields that the planner reads (`explain.clusterdump.scrubbed`). Therefore recordings,
like files of `muster snapshot`, contain no secrets.
"""

import re
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from extender.explain.clusterdump import READ, scrubbed
from muster.api.muster.usage import PublishedUsage

FORMAT: Final = "muster-recording/v1"


class RecordLine(Struct, tag_field="is", omit_defaults=True, rename="camel", kw_only=True):
    """Common fields of all lines; `at` is the time in seconds since the epoch."""

    at: float = 0.0


class Head(RecordLine, tag="head"):
    """The first line of a recording's file."""

    format: str
    version: str = ""
    """Version of Muster that made the recording."""
    session: str = ""
    """Identifier of one run of the extender; the planner's memory does not survive the extender's restart."""
    number: int = 0
    """Number of the file among the files of one run."""
    pool: str = ""
    config: str = ""
    """Text of the scheduler configuration; empty for the default configuration."""
    settings: dict[str, Any] = {}
    """Those settings of the extender that the planner uses."""
    planner: bool = True
    """False if the recording was made without a planner (`muster record`), so that it contains no decisions."""


class KnownLine(RecordLine, tag="known"):
    """An object that exists when the file begins; a `Put` line records a later addition or change."""

    kind: str
    object: Raw


class ObjectsEndLine(RecordLine, tag="whole"):
    """End of the list of objects at the beginning of a file; objects that are not in this list no longer exist."""


class Put(RecordLine, tag="put"):
    """Records that an object was added or has changed."""

    kind: str
    object: Raw
    own: bool = False
    """True for the planner's own write, which is recorded before the watch reports the change."""


class GoneLine(RecordLine, tag="gone"):
    """Records that an object was deleted."""

    kind: str
    key: str
    own: bool = False


class Bound(RecordLine, tag="bound"):
    """Records that Muster has bound a pod; the line is written before the watch reports the binding."""

    uid: str
    node: str
    devices: tuple[int, ...] = ()


class ConfigLine(RecordLine, tag="config"):
    """Records a new scheduler configuration, which applies from the next cycle on."""

    text: str


class SnapshotLine(RecordLine, tag="look"):
    """Records that the planner copied its state for a cycle; later changes belong to the next cycle."""


class Cycle(RecordLine, tag="cycle"):
    """A cycle on the state at the last `SnapshotLine`: time (`at`), inputs that no watch reports, and decisions."""

    arrived: dict[str, list[tuple[str, int]]] = {}
    """Maps the UID of a gang to the slots of members that wait at the barrier for other members."""
    avoided: dict[str, dict[str, float]] | None = None
    """Maps a gang and a node that rejected a member to the time until which the gang avoids this node. The value is
    None in recordings of older versions.
    """
    gone: list[str] = []
    """Names of deleted nodes on which gangs still have members."""
    served: bool | None = None
    """True if the API server serves ProvisioningRequests."""
    usage: PublishedUsage | None = None
    """Past usage of queues; None if no queue has a budget."""
    decided: list[tuple[str, ...]] = []
    """The cycle's decisions as strings, from `record.decisiontexts`."""


class Lost(RecordLine, tag="lost"):
    """Records how many changes arrived too fast to be written; its file begins with all objects known then."""

    changes: int
    since: float = 0.0


class EndLine(RecordLine, tag="end"):
    """The end of a properly closed file; the line is missing if the process was killed or is still writing."""

    why: str = ""


AnyLine = (
    Head | KnownLine | ObjectsEndLine | Put | GoneLine | Bound | ConfigLine | SnapshotLine | Cycle | Lost | EndLine
)

_VERSION = re.compile(rb',"resourceVersion":"[^"]*"')
_encode = msgspec.json.Encoder().encode
_decoder: msgspec.json.Decoder[AnyLine] = msgspec.json.Decoder(AnyLine)
_of_kind = {name: msgspec.json.Decoder(resource.type) for name, resource in READ.items()}


def encoded(line: AnyLine) -> bytes:
    """Return the line as JSON, without a line break."""
    return _encode(line)


def decoded(text: bytes) -> AnyLine:
    """Decode a line.

    Raises msgspec.DecodeError if the line is not JSON, and msgspec.ValidationError if this version does not know its
    format.
    """
    return _decoder.decode(text)


def packed(item: Any) -> Raw:
    """Encode an object with only the fields that the planner reads."""
    return Raw(_encode(scrubbed(item)))


def alike(one: Raw, other: Raw) -> bool:
    """Return True if two objects, given as text, are equal except for their resourceVersion."""
    return _VERSION.sub(b"", bytes(one), count=1) == _VERSION.sub(b"", bytes(other), count=1)


def unpacked(kind: str, text: Raw) -> Any:
    """Decode an object of a kind from its recorded form."""
    return _of_kind[kind].decode(text)

"""The file of `muster snapshot`: gzipped JSON, so that people can look into it too."""

import gzip
import zlib
from typing import Any

import msgspec

from extender.explain.clusterdump import READ, ClusterDump, kind_name
from extender.explain.scrub import scrubbed
from muster.api.kubernetes.autoscaling import PROVISIONING_REQUESTS
from muster.api.kubernetes.meta import format_time, parse_time

FORMAT = "muster-snapshot/v1"
_MAGIC = b"\x1f\x8b"


class _File(msgspec.Struct, rename="camel", kw_only=True):
    """What stands in the file."""

    format: str
    taken_at: str
    scheduler_config: str = ""
    objects: dict[str, msgspec.Raw]


def save(dump: ClusterDump) -> bytes:
    """The picture as a file, with nothing in it that the planner does not read; equal pictures give equal files."""
    objects = {
        kind_name(resource): msgspec.json.encode([scrubbed(item) for item in dump.of(resource)])
        for resource in READ
        if dump.has(resource) or resource is not PROVISIONING_REQUESTS
    }
    file = _File(
        format=FORMAT,
        taken_at=format_time(dump.taken_at, micros=True),
        scheduler_config=dump.scheduler_config,
        objects={kind: msgspec.Raw(text) for kind, text in objects.items()},
    )
    return gzip.compress(msgspec.json.encode(file), mtime=0)


def load(content: bytes) -> ClusterDump:
    """Reads the file back. Raises ValueError that says what is wrong with it."""
    try:
        text = gzip.decompress(content) if content.startswith(_MAGIC) else content
        file = msgspec.json.decode(text, type=_File)
    except (OSError, EOFError, zlib.error, msgspec.DecodeError) as error:
        raise ValueError(f"this is not a file of `muster snapshot`: {error}") from error
    if file.format != FORMAT:
        raise ValueError(f"the file has format {file.format!r}; this version reads {FORMAT!r}: take it again")
    dump = ClusterDump(parse_time(file.taken_at) or 0.0, file.scheduler_config)
    known: dict[str, Any] = {kind_name(resource): resource for resource in READ}
    for kind, raw in file.objects.items():
        if kind in known:  # another kind comes from a later version, whose planner reads more than ours
            items = msgspec.json.decode(raw, type=list[known[kind].type])  # type: ignore[misc]  # chosen at run time
            dump.put(known[kind], items)
    return dump

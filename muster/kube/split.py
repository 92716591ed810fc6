"""Cuts JSON into the parts of its outermost object or array, however deeply these are nested.

The decoder gives up (RecursionError) where values are nested a thousand levels deep, also in fields that it skips.
This counts brackets instead, so it is slower, but finds the one object on a page that is too deep, and its name.
"""

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import msgspec

_TOKENS = re.compile(rb'("(?:[^"\\]++|\\.)*+")(\s*+:)?|[{\[]|[}\]]', re.DOTALL)
"""A string, which a colon makes a key, and brackets; everything else is between them."""
_MOST_TOKENS = 10_000
"""A name is looked for no farther, which takes some two milliseconds; strings count as one, whatever their length."""


class Identity(NamedTuple):
    """Which object this is, as far as that could be found out; empty strings stand for the rest."""

    namespace: str = ""
    name: str = ""
    resource_version: str = ""

    @property
    def key(self) -> str:
        """`namespace/name`, or `name` for cluster-scoped objects."""
        return f"{self.namespace}/{self.name}" if self.namespace and self.name else self.name


def parts(data: bytes, most_tokens: int | None = None) -> Iterator[tuple[bytes, bytes]]:
    """The (key, value) pairs of an object, or the values of an array under empty keys, as they stand in the text.

    Values that are strings, objects or arrays; numbers, booleans and null are passed over. Where the text ends, or
    `most_tokens` were looked at, in the middle of a value, the beginning of that is the last one.
    """
    depth, begin, key = 0, 0, b""
    for token in islice(_TOKENS.finditer(data), most_tokens):
        first = data[token.start()]
        if first in b"{[":
            depth += 1
            if depth == 2:  # noqa: PLR2004 - one level inside of the outermost
                begin = token.start()
        elif first in b"}]":
            depth -= 1
            if depth == 1:
                yield key, data[begin : token.end()]
        elif depth == 1 and token[2]:
            key = token[1][1:-1]
        elif depth == 1:
            yield key, token[1]
    if depth > 1:
        yield key, data[begin:]


def part(data: bytes, key: bytes) -> bytes:
    """The value under this key near the beginning of an object, or what there is of it; empty if it is not found."""
    return next((value for found, value in parts(data, _MOST_TOKENS) if found == key), b"")


def identity(data: bytes) -> Identity:
    """Which object this is, also where it is nested too deeply or cut off, if its name is near its beginning."""
    metadata = dict(parts(part(data, b"metadata"), _MOST_TOKENS))
    return Identity(*(text(metadata.get(key, b"")) for key in (b"namespace", b"name", b"resourceVersion")))


def text(value: bytes) -> str:
    """What a JSON string says; empty for anything else."""
    try:
        return msgspec.json.decode(value, type=str)
    except (msgspec.DecodeError, RecursionError):
        return ""

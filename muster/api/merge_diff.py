"""Merge patches (RFC 7386) made of the difference between two objects.

A patch with nothing but differences leaves other fields to their writers, and an empty one need not be sent. Pure, so
that decisions can make patches that the edges send.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import to_builtins


def difference(old: Any, new: Any) -> dict[str, Any]:
    """Return the JSON merge patch from one Struct or mapping to the other; empty if they are equal.

    Members that `new` lacks are removed (null), also fields that a Struct leaves out as they have their default again.
    Lists are replaced as a whole, as a merge patch has no parts of them.
    """
    return _merge(to_builtins(old), to_builtins(new))


def _merge(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    patch: dict[str, Any] = dict.fromkeys(old.keys() - new.keys())
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            nested = _merge(before, value)
            if nested:
                patch[key] = nested
        elif value != before:
            patch[key] = value
    return patch

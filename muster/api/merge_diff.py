"""Merge patches (RFC 7386) from the difference between two objects.

A patch with only the changed fields does not overwrite fields that other clients have written. An empty patch need not
be sent. The functions are pure: they only compute patches, and other code sends them.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import to_builtins


def difference(old: Any, new: Any) -> dict[str, Any]:
    """Return the JSON merge patch that changes one Struct or mapping into another; empty if both are equal.

    Keys that are missing in `new` are removed (null), and so are fields that a Struct omits because they have their
    default again. Lists are replaced as a whole, because merge patches cannot change parts of them.
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

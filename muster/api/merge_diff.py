"""What a merge patch has to say to lead from one object to another: only the fields that differ.

The other direction of RFC 7386. A patch with nothing but differences leaves alone what others write meanwhile, and an
empty one need not be sent at all. Pure, so that decisions can make patches that the edges send.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import to_builtins


def difference(old: Any, new: Any) -> dict[str, Any]:
    """The JSON merge patch from one Struct or mapping to the other; empty if they are equal.

    What is missing in `new` is removed (null), and so is a field that a Struct leaves out as it has its default again.
    Lists are replaced as a whole, as a merge patch knows no parts of them.
    """
    return _merge(to_builtins(old), to_builtins(new))


def applied(target: Any, patch: Any) -> Any:
    """What a JSON merge patch makes of a value, as the API server does it; nothing is changed in place."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = applied(result.get(key), value)
    return result


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

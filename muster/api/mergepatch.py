"""JSON merge patches (RFC 7396), as the API server takes them."""

from collections.abc import Mapping
from typing import Any

from msgspec import to_builtins


def difference(old: Any, new: Any) -> dict[str, Any]:
    """The JSON merge patch from one Struct or mapping to the other; empty if they are equal."""
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

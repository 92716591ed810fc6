"""JSON merge patches (RFC 7386), as the API server applies them."""

from collections.abc import Mapping
from typing import Any


def applied(target: Any, patch: Any) -> Any:
    """Return a value after a JSON merge patch, as the API server applies it; nothing is changed in place."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = applied(result.get(key), value)
    return result

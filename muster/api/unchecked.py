"""Access to unvalidated JSON: a value of the wrong type counts as missing.

The API server later rejects values of a wrong type, and names every wrong field.
"""

from collections.abc import Collection
from typing import Any


def mapping(value: Any) -> dict[str, Any]:
    """Return a JSON object unchanged; for any other value, an empty object."""
    return value if isinstance(value, dict) else {}


def value_at(document: Any, path: Collection[str | int]) -> Any:
    """Return the value at a path of field names and list indexes; None if the path does not exist."""
    value = document
    for part in path:
        if isinstance(value, dict):
            value = value.get(str(part))
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
        else:
            return None
    return value

"""Reads JSON whose shape nobody has checked yet.

What has another shape counts as missing: the API server's turn comes next, and it refuses that with every wrong field.
"""

from collections.abc import Collection
from typing import Any


def mapping(value: Any) -> dict[str, Any]:
    """A JSON object as it is; anything else as an empty one."""
    return value if isinstance(value, dict) else {}


def find(document: Any, path: Collection[str | int]) -> Any:
    """The value at a path of member names and list indexes; None where there is none."""
    value = document
    for part in path:
        if isinstance(value, dict):
            value = value.get(str(part))
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
        else:
            return None
    return value

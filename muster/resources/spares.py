"""Annotations about spare slots: the number of a gang's spare nodes, and the permission to borrow spare slots.

In the annotation `muster.dev/spares`, "2" applies to the gang's largest pod set; "worker=2,ps=1" names the pod sets.
"""

import re
from collections.abc import Iterator, Mapping

from muster.api import names
from muster.api.fields import FieldError
from muster.api.limits import SPARES, TASKS, whole_number

_MAX_CHARS = 4_096
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_HOW = f"write a number of nodes from 0 to {SPARES.value}, or a number for each pod set, such as worker=2,ps=1"


def parse_spares(text: str) -> dict[str, int]:
    """Return the numbers of spare nodes, keyed by pod set; the key "" stands for the largest pod set.

    Raises ValueError that explains the format.
    """
    if len(text) > _MAX_CHARS:
        raise ValueError(f"the annotation has {len(text)} characters; at most {_MAX_CHARS} are allowed: {_HOW}")
    parts = [part.strip() for part in text.split(",")]
    found: dict[str, int] = {}
    for part in parts:
        name, named, count = part.rpartition("=")
        number = whole_number(count.strip())
        name = name.strip()
        if number is None or bool(named) != bool(_NAME.fullmatch(name)) or (not named and len(parts) > 1):
            raise ValueError(f"{part!r} is not a number of spares; {_HOW}")
        if name in found:
            raise ValueError(f"pod set {name!r} is named twice; {_HOW}")
        found[name] = number
    if sum(found.values()) > SPARES.value:
        raise ValueError(
            f"the annotation requests {sum(found.values())} spares; at most {SPARES.value} are allowed: {_HOW}"
        )
    if len(found) > TASKS.value:
        raise ValueError(f"the annotation has {len(found)} pod sets; at most {TASKS.value} are allowed: {_HOW}")
    return {name: number for name, number in found.items() if number}


def spares_of(annotations: Mapping[str, str]) -> dict[str, int]:
    """Return the numbers of a PodGroup's spare nodes, keyed by pod set; empty for an invalid annotation."""
    text = annotations.get(names.SPARES)
    if text is None:
        return {}
    try:
        return parse_spares(text)
    except ValueError:
        return {}


def borrows(annotations: Mapping[str, str]) -> bool:
    """Return True for a gang that may run on borrowed spare slots until the gang that lends them needs them."""
    return annotations.get(names.BORROWS) == "true"


def mistakes(annotations: Mapping[str, str], path: str) -> Iterator[FieldError]:
    """Yield the errors in these annotations, at this field path."""
    borrows_text = annotations.get(names.BORROWS)
    if borrows_text not in {None, "true", "false"}:
        yield FieldError(f"{path}[{names.BORROWS}]", "must be true or false", borrows_text)
    if borrows_text == "true" and annotations.get(names.PREEMPTABLE) == "false":
        why = "a gang on borrowed spares is evicted when the lender needs the spares"
        message = f"must not be true if {names.PREEMPTABLE} is false: {why}"
        yield FieldError(f"{path}[{names.BORROWS}]", message, borrows_text)
    text = annotations.get(names.SPARES)
    if text is None:
        return
    try:
        parse_spares(text)
    except ValueError as error:
        yield FieldError(f"{path}[{names.SPARES}]", str(error), text)

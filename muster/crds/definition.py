"""What a CRD needs beside the schema of its kind: names, columns, and the words for docs/api.md."""

from dataclasses import dataclass
from typing import Any

from muster.api.base import Resource


@dataclass(frozen=True, slots=True)
class Column:
    """One column of `kubectl get`; those with a priority above 0 are shown with `-o wide` only."""

    name: str
    type: str
    path: str
    priority: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One kind. `about` opens its section in docs/api.md."""

    resource: Resource[Any]
    short_names: tuple[str, ...]
    columns: tuple[Column, ...]
    status_subresource: bool
    about: str


AGE = Column("AGE", "date", ".metadata.creationTimestamp")

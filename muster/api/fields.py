"""Errors of fields: where, the offending value, and what would be right. They are gathered, never just the first."""

from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

Reason = Literal["Invalid", "Required", "Duplicate", "NotFound", "NotSupported", "Forbidden"]
"""What is wrong, in the API server's words."""

_PHRASES: dict[Reason, str] = {
    "Invalid": "Invalid value",
    "Required": "Required value",
    "Duplicate": "Duplicate value",
    "NotFound": "Not found",
    "NotSupported": "Unsupported value",
    "Forbidden": "Forbidden",
}
_SHOWN_CHARS = 200


@dataclass(frozen=True, slots=True)
class FieldError:
    """One field that is refused; `message` says what would be right, as a sentence without a full stop."""

    path: str
    message: str
    value: Any = None
    reason: Reason = "Invalid"

    @property
    def cause(self) -> str:
        """The message as kubectl shows it behind the field's path."""
        if self.reason in {"Required", "Forbidden"}:
            return f"{_PHRASES[self.reason]}: {self.message}"
        shown = msgspec.json.encode(self.value, enc_hook=repr).decode()
        if len(shown) > _SHOWN_CHARS:
            shown = f"{shown[:_SHOWN_CHARS]}…"
        return f"{_PHRASES[self.reason]}: {shown}: {self.message}"

    def __str__(self) -> str:
        return f"{self.path}: {self.cause}"


class InvalidFieldError(Exception):
    """A field that makes it impossible to go on."""

    def __init__(self, error: FieldError) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass(slots=True)
class Findings:
    """What a validation found: errors refuse the object, warnings are shown to whoever sent it."""

    errors: list[FieldError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def add(self, other: "Findings") -> None:
        """Takes over all of another's."""
        self.errors += other.errors
        self.warnings += other.warnings

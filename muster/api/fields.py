"""Errors in fields, each with the path of the field, the invalid value and the valid values.

A validation collects all errors of an object.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

Reason = Literal["Invalid", "Required", "Duplicate", "NotFound", "NotSupported", "Forbidden"]
"""The type of error, as the API server names it."""

_PHRASES: dict[Reason, str] = {
    "Invalid": "Invalid value",
    "Required": "Required value",
    "Duplicate": "Duplicate value",
    "NotFound": "Not found",
    "NotSupported": "Unsupported value",
    "Forbidden": "Forbidden",
}
_SHOWN_CHARS = 200


def brief(text: str) -> str:
    """Return a user-supplied text for use in a message, truncated if it is very long."""
    return f"{text[:_SHOWN_CHARS]}…" if len(text) > _SHOWN_CHARS else text


@dataclass(frozen=True, slots=True)
class FieldError:
    """Error in one rejected field. `message` describes the field's valid values, as a sentence without a full stop.

    Raises ValueError if the message is empty, because the user would not know how to fix the field.
    """

    path: str
    message: str
    value: Any = None
    reason: Reason = "Invalid"

    def __post_init__(self) -> None:
        if not self.message.strip():
            raise ValueError(f"{self.path} is rejected, but the error has no message")

    @property
    def cause(self) -> str:
        """The error's message as kubectl shows it after the field's path."""
        if self.reason in {"Required", "Forbidden"}:
            return f"{_PHRASES[self.reason]}: {self.message}"
        shown = brief(msgspec.json.encode(self.value, enc_hook=repr).decode())
        return f"{_PHRASES[self.reason]}: {shown}: {self.message}"

    def __str__(self) -> str:
        return f"{self.path}: {self.cause}"


class InvalidFieldError(Exception):
    """Exception for a field error that makes a computation impossible."""

    def __init__(self, error: FieldError) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass(slots=True)
class Findings:
    """The result of a validation.

    An object with errors is rejected; warnings are shown to the user who sent the object.
    """

    errors: list[FieldError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def add(self, other: "Findings") -> None:
        """Add all errors and warnings of another result."""
        self.errors += other.errors
        self.warnings += other.warnings

    def distinct(self) -> "Findings":
        """Return each error and warning once."""
        errors = {str(error): error for error in self.errors}
        return Findings(list(errors.values()), list(dict.fromkeys(self.warnings)))

    def since(self, before: "Findings") -> "Findings":
        """Return the errors and warnings that the old object did not have.

        An update is only rejected for errors that it introduces.
        """
        errors, warnings = set(map(str, before.errors)), set(before.warnings)
        return Findings(
            [error for error in self.errors if str(error) not in errors],
            [warning for warning in self.warnings if warning not in warnings],
        )

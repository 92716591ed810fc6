"""What a pass could not do, as the Job's status and events tell it."""

from collections.abc import Sequence
from typing import NamedTuple


class Failure(NamedTuple):
    """Reason and message; a `transient` one is worth another try."""

    reason: str
    message: str
    transient: bool = True


RECOVERABLE = frozenset({"FailedCreate", "FailedDelete", "PluginError", "PodGroupError", "PVCError"})
"""Reasons that give way to another one when the failure is over."""


def summary(failures: Sequence[Failure]) -> tuple[str, str]:
    """Reason and message for what failed: the first, and how many more there are."""
    reason, message, _ = failures[0]
    return reason, f"{message} (and {len(failures) - 1} more)" if len(failures) > 1 else message

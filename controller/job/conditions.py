"""What a pass could not do, as the Job's status and events tell it."""

from collections.abc import Sequence
from typing import NamedTuple


class Trouble(NamedTuple):
    """Reason and message; `passing` troubles are worth another try."""

    reason: str
    message: str
    passing: bool = True


RECOVERABLE = frozenset({"FailedCreate", "FailedDelete", "PluginError", "PodGroupError", "PVCError"})
"""Reasons that give way to another one when the trouble is over."""


def summary(troubles: Sequence[Trouble]) -> tuple[str, str]:
    """Reason and message for what failed: the first, and how many more there are."""
    reason, message, _ = troubles[0]
    return reason, f"{message} (and {len(troubles) - 1} more)" if len(troubles) > 1 else message

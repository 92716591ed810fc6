"""Which members of a pod set get a node first, where not all of them do: by an integer label, largest first."""

from collections.abc import Mapping
from typing import Any

from extender.framework.registry import refuse_arguments
from extender.framework.session import Session
from extender.state.pods import PodRecord
from muster.api.names import TASK_PRIORITY


class TaskOrder:
    """Pods with the label go before pods without; the label is muster.dev/task-priority."""

    name = "taskorder"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        refuse_arguments(self.name, arguments)

    def on_session_open(self, session: Session) -> None:
        """Register the order."""
        session.add("task_order", compare)

    def on_session_close(self, session: Session) -> None:
        """Nothing to clean up."""


def compare(left: PodRecord, right: PodRecord) -> int:
    """Negative if `left` comes first."""
    priorities = [_priority(left), _priority(right)]
    if priorities[0] == priorities[1]:
        return 0
    if priorities[0] is None or priorities[1] is None:
        return 1 if priorities[0] is None else -1
    return priorities[1] - priorities[0]


def _priority(pod: PodRecord) -> int | None:
    """The label's value; None without the label, or if it is no integer."""
    text = pod.labels.get(TASK_PRIORITY, "")
    return int(text) if text.lstrip("-").isascii() and text.lstrip("-").isdigit() else None

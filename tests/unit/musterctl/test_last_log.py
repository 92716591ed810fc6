"""The last line of the log of a failed gang, of which no program decides the length."""

from typing import Any

import msgspec
import pytest
from builders import manifests

from muster.api.kubernetes.core import Pod
from muster.kube.errors import Forbidden
from musterctl.lastlog import last_line

ENDED = {"name": "main", "state": {"terminated": {"exitCode": 3, "finishedAt": "2026-01-01T00:00:00Z"}}}


class Logs:
    """A client whose container printed this; None: the user may not read it."""

    def __init__(self, printed: str | None) -> None:
        self.printed = printed

    def log_lines(self, pod: str, namespace: str, container: str, *, follow: bool, last: int, most_bytes: int) -> Any:
        """What the API server sends of it, cut."""
        assert (pod, namespace, container, follow, last) == ("train-1", "ns", "main", False, 1)
        if self.printed is None:
            raise Forbidden("no", reason="Forbidden", where="GET log")
        return [self.printed[:most_bytes]]


def pod(name: str, phase: str, statuses: list[dict[str, Any]]) -> Pod:
    """A member with one container."""
    made = manifests.pod(name, "ns", node="n", phase=phase, containers=[{"name": "main"}])
    made["status"]["containerStatuses"] = statuses
    return msgspec.convert(made, Pod)


PODS = [pod("train-0", "Running", []), pod("train-1", "Failed", [ENDED])]


@pytest.mark.parametrize(("printed", "shown"), [
    ("out of \x1b[31mmemory", ["last line of the log of pod train-1: out of [31mmemory"]),
    (None, []),
])  # fmt: skip
def test_the_last_line(printed: str | None, shown: list[str]) -> None:
    """Of the member that failed first, without control characters; nothing where the user may not read it."""
    assert list(last_line(Logs(printed), PODS)) == shown  # type: ignore[arg-type]


def test_a_line_without_end() -> None:
    """It is cut before it is read."""
    [line] = last_line(Logs("x" * 10**6), PODS)  # type: ignore[arg-type]
    assert len(line) < 5_000


def test_nobody_failed() -> None:
    """No log is read."""
    assert not list(last_line(Logs("x"), PODS[:1]))  # type: ignore[arg-type]

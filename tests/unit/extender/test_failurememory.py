"""Nodes that gangs leave out outlive the process that noted them."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from extender_world import NOW, World
from structlog.testing import capture_logs

from extender.cluster import LiveCluster
from extender.publish import MOST_BYTES, FailureMemory, encoded, read_failures
from muster.api.kubernetes.meta import format_time
from muster.api.muster.configuration import AVOIDED
from muster.api.muster.placement import AvoidedNode
from muster.kube.errors import Unreachable


class Api:
    """One ConfigMap, which may be patched and not be read."""

    def __init__(self, data: dict[str, str] | None = None) -> None:
        self.data = {"seen": "1", **(data or {})}
        self.fails = False

    def merge_patch(self, _resource: object, _name: str, patch: dict[str, Any], _namespace: str) -> Any:
        """As the API server."""
        if self.fails:
            raise Unreachable("refused", reason="Refused", where="here")
        self.data |= patch.get("data", {})
        return SimpleNamespace(data=dict(self.data))


def memory(api: Api) -> tuple[FailureMemory, LiveCluster]:
    """The memory of a new process."""
    cluster = LiveCluster(cast("Any", None), wake=lambda _: None)
    cluster.state = World().state
    return FailureMemory(cast("Any", api), cluster, "muster-system", "muster-planner", wall_s=lambda: NOW), cluster


def avoided(node: str, *, for_s: float = 60.0, failures: int = 1) -> AvoidedNode:
    """A node that is left out from now on."""
    return AvoidedNode(node=node, until=format_time(NOW + for_s), cause="w-0 failed there", failures=failures)


def test_the_next_process_knows_them() -> None:
    """The rest of the ConfigMap stays as it is."""
    api = Api()
    first, cluster = memory(api)
    cluster.state.failures.remember("ns/a", [avoided("n1"), avoided("n2", failures=3)])
    first.keep()
    second, then = memory(api)
    second.recall()
    assert then.state.failures.remembered == {"ns/a": (avoided("n1"), avoided("n2", failures=3))}
    assert api.data["seen"] == "1"


def test_what_is_known_already_is_newer() -> None:
    """The process has seen a failure itself before it led."""
    mine, cluster = memory(Api({AVOIDED: encoded({"ns/a": (avoided("old"),)}, NOW)}))
    cluster.state.failures.remember("ns/a", [avoided("new")])
    mine.recall()
    assert cluster.state.failures.remembered == {"ns/a": (avoided("new"),)}


def test_what_is_long_over_is_not_kept() -> None:
    """A day after its end a failure counts no more."""
    assert read_failures(encoded({"ns/a": (avoided("n1", for_s=-90_000.0),)}, NOW)) == {}


def test_there_is_a_limit() -> None:
    """The gangs whose members failed last are kept."""
    known = {f"ns/gang-{number}": (avoided(f"node-{number}"),) for number in range(5_000)}
    text = encoded(known, NOW)
    kept = list(read_failures(text))
    assert len(text) <= MOST_BYTES + 1
    assert kept == list(known)[-len(kept) :]
    assert len(kept) > 1_000


@pytest.mark.parametrize("text", ["{", '{"a": 1}'])
def test_what_cannot_be_read_is_told_and_left(text: str) -> None:
    """Planning goes on with what Placements say."""
    mine, cluster = memory(Api({AVOIDED: text}))
    with capture_logs() as logs:
        mine.recall()
    assert not cluster.state.failures.remembered
    assert [each["event"] for each in logs] == ["the list of nodes that gangs avoid cannot be read"]


def test_an_api_server_that_does_not_answer_is_told() -> None:
    """Neither keeps planning from going on."""
    api = Api()
    api.fails = True
    mine, _ = memory(api)
    with capture_logs() as logs:
        mine.keep()
        mine.recall()
    assert len(logs) == 2

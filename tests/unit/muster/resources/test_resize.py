"""What a pod on a node takes while it is resized is what kube-scheduler counts up to 1.36; later ones count no more."""

from typing import Any

import msgspec
import pytest

from muster.api.kubernetes.core import Pod
from muster.resources.pods import requests_on_node

PENDING = {"type": "PodResizePending", "status": "True"}


def taken(spec: dict[str, Any], status: dict[str, Any]) -> dict[str, int]:
    """What such a pod takes, except that it is one pod."""
    result = requests_on_node(msgspec.convert({"spec": {"nodeName": "n", **spec}, "status": status}, Pod))
    assert result.pop("pods") == 1
    return result


def main(cpu: str) -> dict[str, Any]:
    """A container that asks for so much."""
    return {"name": "main", "resources": {"requests": {"cpu": cpu}}}


def has(name: str, cpu: str, allocated: str = "") -> dict[str, Any]:
    """The status of a container that has so much, and for which so much is set aside."""
    status: dict[str, Any] = {"name": name, "resources": {"requests": {"cpu": cpu}}}
    return status | ({"allocatedResources": {"cpu": allocated}} if allocated else {})


@pytest.mark.parametrize(
    ("asked", "status", "conditions", "cpu"),
    [
        ("2", {"name": "main"}, [], 2000),
        ("2", has("main", "1", "1"), [], 2000),
        ("1", has("main", "4", "2"), [], 4000),
        ("1", has("main", "2", "4"), [], 4000),
        ("8", has("main", "1", "2"), [PENDING | {"reason": "Deferred"}], 8000),
        ("8", has("main", "1", "2"), [PENDING | {"reason": "Infeasible"}], 2000),
        ("8", has("main", "1", "2"), [PENDING | {"reason": "Infeasible", "status": "False"}], 8000),
    ],
)
def test_the_most_of_what_is_asked_for_set_aside_and_there(
    asked: str, status: dict[str, Any], conditions: list[dict[str, str]], cpu: int
) -> None:
    """Without what is asked for where that can never be."""
    assert taken({"containers": [main(asked)]}, {"containerStatuses": [status], "conditions": conditions}) == {
        "cpu": cpu
    }


def test_sidecars_are_resized_too_and_ordinary_init_containers_are_not() -> None:
    """An ordinary init container counts as it was written."""
    side = main("1") | {"name": "side", "restartPolicy": "Always"}
    spec = {"containers": [main("1")], "initContainers": [side, main("3") | {"name": "init"}]}
    init_container_statuses = [has("side", "2", "2"), has("init", "9", "9")]
    status = {"containerStatuses": [has("main", "1", "1")], "initContainerStatuses": init_container_statuses}
    assert taken(spec, status) == {"cpu": 5000}
    assert taken(spec, {}) == {"cpu": 4000}


@pytest.mark.parametrize(
    ("asked", "status", "reason", "cpu"),
    [
        ("4", {}, "", 4000),
        ("4", {"resources": {"requests": {"cpu": "6"}}}, "", 6000),
        ("4", {"resources": {"requests": {"cpu": "2"}}, "allocatedResources": {"cpu": "5"}}, "", 5000),
        ("4", {"resources": {"requests": {"cpu": "2"}}, "allocatedResources": {"cpu": "3"}}, "Infeasible", 3000),
    ],
)
def test_resources_of_the_pod_as_a_whole(asked: str, status: dict[str, Any], reason: str, cpu: int) -> None:
    """They stand for the sum of the containers, by the same rule."""
    spec = {"containers": [main("1")], "resources": {"requests": {"cpu": asked}}}
    conditions = [PENDING | {"reason": reason}] if reason else []
    assert taken(spec, {**status, "conditions": conditions}) == {"cpu": cpu}

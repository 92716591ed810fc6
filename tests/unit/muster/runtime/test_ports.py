"""The port of a framework: opened once in a pod, whatever else is in the pod."""

from collections.abc import Callable
from typing import Any

import pytest
from frameworks_world import Group, indexed_job, jobset, shaped, stateful_set, template

JSON = dict[str, Any]
PORTS = {"torch": 29500, "jax": 29500, "xgboost": 29500, "tensorflow": 2222}
INJECTED = {"muster.dev/inject-into": "helper, prepare, beside"}
TAKEN: list[tuple[str, JSON, list[str]]] = [
    ("nobody", {}, ["node"]),
    ("helper", {"protocol": "TCP"}, ["helper"]),
    ("helper", {"protocol": "UDP"}, ["node", "helper"]),
    ("beside", {"protocol": "TCP"}, ["beside"]),
    ("node", {}, ["node"]),
]


@pytest.mark.parametrize(("by", "how", "has"), TAKEN)
@pytest.mark.parametrize("owner", [indexed_job, jobset, stateful_set])
@pytest.mark.parametrize("framework", PORTS)
@pytest.mark.parametrize("host_network", [False, True])
def test_one_container_has_it(
    framework: str, owner: Callable[[JSON], Group], by: str, how: JSON, has: list[str], *, host_network: bool
) -> None:
    """The one that runs the framework, unless another has it: on the host's network both would be refused."""
    pods = template(framework, INJECTED, {}, hostNetwork=host_network)
    spec = pods["spec"]
    spec["containers"].append({"name": "helper", "image": "i"})
    spec["initContainers"] = [
        {"name": "prepare", "image": "i"},
        {"name": "beside", "image": "i", "restartPolicy": "Always"},
    ]
    for container in (*spec["containers"], *spec["initContainers"]):
        if container["name"] == by:
            container["ports"] = [{"containerPort": PORTS[framework], **how}]
    result = shaped(owner(pods))
    assert not result.errors
    after = result.pod["spec"]
    containers = [*after["containers"], *after["initContainers"]]
    assert [each["name"] for each in containers if each.get("ports")] == has
    assert all(each.get("env") for each in containers)  # that is what inject-into is for

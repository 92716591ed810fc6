"""A pod's class is found by what it is made from, and is then the class that would be made."""

from collections.abc import Iterator
from copy import deepcopy
from itertools import combinations
from typing import Any

import msgspec
import pytest

from extender.planner.state.podclass import ClassTable
from extender.planner.state.podshape import raw_key
from muster.api.kubernetes.core import Pod

JSON = dict[str, Any]
NEAR = [{"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "a"}}, "matchLabelKeys": ["app"]}]
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": ["app"]}
ON_DISK = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "Exists"}]}]}
PIN = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}]}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ON_HOST, ASIDE = {"containerPort": 80, "hostPort": 80}, {"cpu": "4"}
ASKS = {"requests": {"cpu": "1"}}
HAS = {"requests": {"cpu": "500m", "memory": "3Gi"}}
PLAIN: JSON = {
    "metadata": {"name": "p", "namespace": "one", "uid": "u", "labels": {"app": "a"}, "annotations": {}},
    "spec": {"containers": [{"name": "main", "resources": ASKS}],
             "initContainers": [{"name": "first", "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}}}],
             "nodeName": "node-1", "schedulerName": "muster"},
    "status": {},
}  # fmt: skip
CHANGES: dict[str, tuple[str, JSON]] = {
    "name": ("metadata", {"name": "q", "uid": "v"}),
    "namespace": ("metadata", {"namespace": "two"}),
    "labels": ("metadata", {"labels": {"app": "b"}}),
    "fraction": ("metadata", {"annotations": {"gpu-fraction": "0.5"}}),
    "other fraction": ("metadata", {"annotations": {"gpu-fraction": "0.25", "gpu-fraction-num-devices": "2"}}),
    "GPU memory": ("metadata", {"annotations": {"gpu-memory": "2000"}}),
    "pinned": ("metadata", {"annotations": {"muster.dev/node": "node-1"}}),
    "requests": ("spec", {"containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]}),
    "limits": ("spec", {"containers": [{"name": "main", "resources": {"limits": {"cpu": "2"}}}]}),
    "container's name": ("spec", {"containers": [{"name": "other", "resources": ASKS}]}),
    "host port": ("spec", {"containers": [{"name": "main", "resources": ASKS, "ports": [ON_HOST]}]}),
    "port": ("spec", {"containers": [{"name": "main", "resources": ASKS, "ports": [{"containerPort": 80}]}]}),
    "host network": ("spec", {"hostNetwork": True}),
    "sidecar": ("spec", {"initContainers": [{"name": "first", "resources": ASKS, "restartPolicy": "Always"}]}),
    "no sidecar": ("spec", {"initContainers": [{"name": "first", "resources": ASKS}]}),
    "of the pod": ("spec", {"resources": {"requests": {"cpu": "5"}}}),
    "overhead": ("spec", {"overhead": {"cpu": "1"}}),
    "selector": ("spec", {"nodeSelector": {"disk": "fast"}}),
    "toleration": ("spec", {"tolerations": [{"key": "a", "operator": "Exists"}]}),
    "node affinity": ("spec", {"affinity": {"nodeAffinity": {REQUIRED: ON_DISK}}}),
    "pin": ("spec", {"affinity": {"nodeAffinity": {REQUIRED: PIN}}}),
    "near": ("spec", {"affinity": {"podAffinity": {REQUIRED: NEAR}}}),
    "far": ("spec", {"affinity": {"podAntiAffinity": {REQUIRED: NEAR}}}),
    "spread": ("spec", {"topologySpreadConstraints": [{**SPREAD, "labelSelector": {"matchLabels": {"app": "a"}}}]}),
    "claim": ("spec", {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}),
    "own claim": ("spec", {"volumes": [{"name": "v", "ephemeral": {}}]}),
    "no claim": ("spec", {"volumes": [{"name": "v", "emptyDir": {}}]}),
    "no node": ("spec", {"nodeName": ""}),
    "another's": ("spec", {"schedulerName": "default-scheduler"}),
    "resized": ("status", {"containerStatuses": [{"name": "main", "resources": HAS}]}),
    "set aside": ("status", {"containerStatuses": [{"name": "main", "resources": HAS, "allocatedResources": ASIDE}]}),
    "sidecar resized": ("status", {"initContainerStatuses": [{"name": "first", "resources": HAS}]}),
    "pod resized": ("status", {"resources": HAS}),
    "pod's set aside": ("status", {"resources": HAS, "allocatedResources": {"cpu": "6"}}),
    "infeasible": ("status", {"conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]}),
}


BESIDE = {
    "namespace": "far", "labels": "spread", "pinned": "pin", "container's name": "resized", "port": "host network",
    "host network": "port", "no node": "resized", "another's": "fraction", "sidecar resized": "sidecar",
    "infeasible": "resized", "pod resized": "of the pod", "pod's set aside": "of the pod",
}  # fmt: skip
"""Changes that matter only beside another one."""


def changed(*parts: str) -> Pod:
    """The plain pod with these changes."""
    content = deepcopy(PLAIN)
    for part in parts:
        where, change = CHANGES[part]
        content[where].update(change)
    return msgspec.convert(content, Pod)


def every_pod() -> Iterator[tuple[str, ...]]:
    """The plain pod, and all pods with one change or two."""
    for count in range(3):
        yield from combinations(CHANGES, count)


def test_who_differs_in_anything_that_matters_is_found_apart() -> None:
    """Of 600 pods that differ in one thing or two, all in one table, as the first of its kind and as the second."""
    table = ClassTable()
    classes = [table.of_pod(changed(*parts)) for parts in every_pod()]
    for parts, cls in zip(every_pod(), classes, strict=True):
        pod = changed(*parts)
        now = table.worked_out(pod)  # who came later may demand something of this one
        assert now.shape == cls.shape, parts
        assert table.of_pod(pod) is now, parts


def test_each_change_but_these_makes_another_class() -> None:
    """Else the test above would not see it left out."""
    table = ClassTable()
    plain = table.of_pod(changed()).shape
    assert {part for part in CHANGES if table.of_pod(changed(part)).shape == plain} == {"name", "no claim", *BESIDE}
    for part, other in BESIDE.items():
        assert table.of_pod(changed(part, other)).shape != table.of_pod(changed(other)).shape, part


def test_pods_of_one_template_are_found_by_the_same_key() -> None:
    """Else each is worked out anew, which takes five times as long, and there may be 50,000."""
    assert raw_key(changed("no claim")) == raw_key(changed("name", "no claim")) != raw_key(changed("requests"))
    assert raw_key(changed("pin", "pinned")) == raw_key(changed())


@pytest.mark.parametrize(("amount", "text"), [(10**30, ""), (-(10**30), ""), (1, "x" * 1_000_000)])
def test_a_pod_that_has_no_key_has_its_class_nevertheless(amount: int, text: str) -> None:
    """No key can hold the number, or it would be a million bytes: the class is made anew each time."""
    pod = changed()
    pod.spec.containers[0].resources.requests["cpu"] = amount
    pod.spec.node_selector["disk"] = text
    assert raw_key(pod) is None
    table = ClassTable()
    assert table.of_pod(pod) is table.worked_out(pod)

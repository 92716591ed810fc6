"""A Job that a client with types read and wrote back is the same Job; one in which a field changed is not."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from webhook_world import JSON, vcjob

from webhook.objects.canonical import canonical, same
from webhook.validate.volcano_job.job import check_update

CONTAINER = {
    "name": "main", "image": "none", "args": ["", "run"], "tty": False, "workingDir": "",
    "env": [{"name": "EMPTY", "value": ""}, {"name": "CPU",
        "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}],
    "ports": [{"containerPort": 80, "hostPort": 0}],
    "resources": {"limits": {"nvidia.com/gpu": 1, "cpu": "1000m", "memory": "1024Mi"},
        "requests": {"cpu": 0.5, "memory": "9Pi"}},
    "securityContext": {"runAsUser": 0, "allowPrivilegeEscalation": False, "capabilities": {}},
    "volumeMounts": [{"name": "scratch", "mountPath": "/scratch", "readOnly": False, "subPath": ""}],
    "livenessProbe": {"tcpSocket": {"port": 80}, "initialDelaySeconds": 0},
}  # fmt: skip
NEAR = [{"topologyKey": "rack", "labelSelector": {"matchLabels": {}}, "namespaceSelector": {}}]
TEMPLATE = {
    "metadata": {"labels": {"a": "", "timeout": "60m", "cpu": "1000m"}},
    "spec": {
        "containers": [CONTAINER, {"name": "plain", "image": "none"}], "initContainers": [], "nodeSelector": {},
        "hostNetwork": False, "automountServiceAccountToken": False, "terminationGracePeriodSeconds": 0,
        "overhead": {"cpu": "0.25"}, "priorityClassName": "", "tolerations": [{"operator": "Exists", "key": ""}],
        "volumes": [
            {"name": "scratch", "emptyDir": {}},
            {"name": "memory", "emptyDir": {"medium": "", "sizeLimit": "1024Mi"}},
            {"name": "claim", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": ""}}}},
        ],
        "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": NEAR}},
    },
}  # fmt: skip
POLICY = {"event": "PodFailed", "action": "RestartJob", "timeout": "1h"}
JOB = vcjob(
    {"name": "w", "replicas": 2, "template": TEMPLATE, "policies": [{**POLICY, "timeout": "1.5s"}], "maxRetry": 3},
    {"name": "v", "replicas": 1, "template": {"spec": {"containers": [{"name": "main"}]}}, "topologyPolicy": ""},
    plugins={"svc": [], "env": ["--x"]},
    policies=[POLICY],
    volumes=[{"mountPath": "/a", "volumeClaim": {"accessModes": []}, "volumeClaimName": ""}],
    ttlSecondsAfterFinished=0,
    networkTopology={"mode": "hard", "highestTierAllowed": 0, "highestTierName": ""},
)
OTHER_WORDS = {1: "1", "1000m": "1", "1024Mi": "1Gi", 0.5: "500m", "0.25": "250m", "1h": "1h0m0s", "1.5s": "1500ms"}
WORDS_OF = ("limits", "requests", "overhead", "sizeLimit", "timeout")
OMITTED = (
    "tty", "workingDir", "value", "hostPort", "readOnly", "subPath", "initialDelaySeconds", "hostNetwork",
    "priorityClassName", "key", "medium", "topologyPolicy", "volumeClaimName", "highestTierName", "initContainers",
    "nodeSelector", "matchLabels", "accessModes",
)  # fmt: skip
"""Fields of no value that the Go types have no pointers for."""


def rewritten(value: Any, draw: Callable[[], bool], name: str = "", inside: str = "") -> Any:
    """A part of a Job as a client with types may write it."""
    if isinstance(value, dict) and name != "labels":
        result = {
            key: rewritten(each, draw, key, name)
            for key, each in value.items()
            if not (key in OMITTED and each in (False, "", 0, [], {}) and draw())
        }
        if name == "template" and draw():
            result.setdefault("metadata", {"creationTimestamp": None})
        if "image" in result and draw():
            result.setdefault("resources", {})
        if name == "volumeClaim" and draw():
            result["resources"] = {}
        if name == "resourceFieldRef" and draw():
            result["divisor"] = "0"
        return result
    if isinstance(value, list):
        return [rewritten(each, draw, "template" if "template" in name else "element") for each in value]
    meant = name in WORDS_OF or inside in WORDS_OF
    return OTHER_WORDS.get(value, value) if meant and draw() else value


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all members that have no members of their own."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if not inside and path:
        yield path
    for key, each in inside:
        yield from leaves(each, (*path, key))


FREE = (("tasks", 0, "replicas"), ("tasks", 1, "replicas"))
FIXED = [path for path in leaves(JOB["spec"]) if path not in FREE]
CHANGED = {bool: True, int: 7, float: 7, str: "1234567s", list: ["added"], dict: {"matchLabels": {"added": "1"}}}


def changed(job: JSON, path: tuple[Any, ...]) -> JSON:
    """The Job with another value at a path of its spec."""
    result = copy.deepcopy(job)
    place = result["spec"]
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = CHANGED[type(place[path[-1]])]
    return result


@given(st.data())
def test_the_words_of_a_client_are_no_change(data: Any) -> None:
    """However much of a Job was written in other words, it means the same."""
    other = {**JOB, "spec": rewritten(JOB["spec"], lambda: data.draw(st.booleans()))}
    assert same(JOB["spec"], other["spec"])
    assert list(check_update(JOB, other)) == []
    assert list(check_update(other, JOB)) == []


@given(st.sampled_from(FIXED), st.data())
def test_a_change_is_one_in_all_words(path: tuple[Any, ...], data: Any) -> None:
    """Whatever is really changed is refused, at one field, also if all else was written in other words."""
    other = changed(JOB, path)
    other["spec"] = rewritten(other["spec"], lambda: data.draw(st.booleans()))
    [error] = check_update(JOB, other)
    assert error.path.startswith("spec.")
    assert str(path[0]) in error.path


@pytest.mark.parametrize(("old", "new"), [
    ({"emptyDir": {}}, {}),
    ({"namespaceSelector": {}}, {}),
    ({"labelSelector": {}}, {}),
    ({"volumeClaim": {}}, {}),
    ({"storageClassName": ""}, {}),
    ({"runAsUser": 0}, {}),
    ({"ttlSecondsAfterFinished": 0}, {}),
    ({"terminationGracePeriodSeconds": 0}, {}),
    ({"defaultMode": 0}, {}),
    ({"automountServiceAccountToken": False}, {}),
    ({"allowPrivilegeEscalation": False}, {}),
    ({"enableServiceLinks": False}, {}),
    ({"plugins": {"svc": []}}, {}),
    ({"labels": {"a": ""}}, {}),
    ({"labels": {"timeout": "60s"}}, {"labels": {"timeout": "1m"}}),
    ({"args": [""]}, {"args": []}),
    ({"timeout": "1h"}, {"timeout": "1h0m1s"}),
    ({"timeout": "0s"}, {}),
    ({"limits": {"memory": "9Pi"}}, {"limits": {"memory": "10Pi"}}),
    ({"limits": {"cpu": "1"}}, {"limits": {"cpu": "1001m"}}),
    ({"divisor": "1"}, {}),
])  # fmt: skip
def test_what_has_a_meaning_of_its_own(old: JSON, new: JSON) -> None:
    """Nothing and zero are not always the same, nor are amounts that are nearly so."""
    assert canonical(old) != canonical(new)


@pytest.mark.parametrize("spec", [{"limits": {"cpu": "many"}}, {"timeout": "long"}, {"timeout": 5}])
def test_what_cannot_be_read_stays(spec: JSON) -> None:
    """It is compared as it was written."""
    assert canonical(spec) == spec


@pytest.mark.parametrize("spec", [None, [], "text", {"tasks": None}])
def test_no_spec(spec: Any) -> None:
    """A Job without one, or with something else in its place, means nothing."""
    assert canonical(spec) == {}

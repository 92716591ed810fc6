"""Objects are decoded one by one: an odd one is left out, and one that is very long is read without most of it."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api import names
from muster.api.kubernetes.core import PODS, Pod
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.codec import ListPage, content_of
from muster.kube.trimming import LONG, TOO_LARGE, trimmed

MANY = 10_000
CHARGED = {names.QUEUE: 'the "best"', names.TASK_SPEC: "worker"}


def compact(content: Any) -> bytes:
    """JSON as the API server writes it."""
    return json.dumps(content, separators=(",", ":")).encode()


def text(**metadata: Any) -> bytes:
    """A pod as the API server writes it."""
    return compact({"metadata": {"name": "one", **metadata}, "spec": {"nodeName": "node-0"}})


def read(**metadata: Any) -> Pod:
    """The pod as it is read."""
    return msgspec.json.decode(trimmed(text(**metadata)), type=Pod)


def test_of_very_many_labels_those_are_kept_by_which_a_pod_is_charged() -> None:
    """Else a pod could leave its queue by more labels."""
    labels = {f"x{number}": "x" for number in range(MANY)}
    pod = read(labels=labels | CHARGED)
    assert (pod.metadata.labels, pod.spec.node_name) == (CHARGED, "node-0")
    assert read(labels=CHARGED | labels).metadata.labels == CHARGED


@pytest.mark.parametrize("part", ["ownerReferences", "finalizers"])
def test_very_many_owners_or_finalizers_are_none(part: str) -> None:
    """Nothing is done for them; the rest is as it was."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "x"}
    many = [owner if part == "ownerReferences" else f"x/y{number}" for number in range(MANY)]
    pod = read(labels=CHARGED, **{part: many})
    assert (pod.metadata.owner_references, pod.metadata.finalizers) == ([], [])
    assert pod.metadata.labels == CHARGED


@pytest.mark.parametrize("long", [{"x": "x" * 4 * LONG}, {f"x{number}": "" for number in range(MANY)}])
def test_of_very_long_annotations_of_a_pod_those_of_muster_are_kept(long: dict[str, str]) -> None:
    """Caches have no memory limit for pods; what determines the charge stays, and is too long for nothing else."""
    annotations = {names.GPU_FRACTION: "0.5", names.NODE: "node-0", names.TOPOLOGY_REQUIRED: "x" * LONG}
    data = text(annotations=annotations | long)
    pod = msgspec.json.decode(trimmed(data, "pods"), type=Pod)
    assert pod.metadata.annotations == annotations | {names.TOPOLOGY_REQUIRED: "x" * 1024}
    assert pod.spec.node_name == "node-0"
    assert trimmed(data, "jobs") is data, "caches of other kinds have a limit"


@given(st.integers(0, 3000), st.integers(0, 200_000), st.booleans())
def test_all_else_is_as_it_was(labels: int, annotation: int, braces: bool) -> None:  # noqa: FBT001 - as hypothesis has it
    """Whatever is long in it."""
    annotations = {"long": ('{"finalizers":[' if braces else "a") * (annotation // 8)}
    metadata = {"labels": {f"x{number}": "y" for number in range(labels)}, "annotations": annotations}
    whole = text(**metadata)
    short = trimmed(whole)
    if len(compact(metadata["labels"])) <= LONG:
        assert bytes(short) == whole
    assert msgspec.json.decode(short, type=Pod).metadata.annotations == metadata["annotations"]


@pytest.mark.parametrize("broken", [b"[1,", b'{"metadata":[]}', b'{"metadata":{"labels":' + b"[" * MANY])
def test_what_cannot_be_read_is_left_to_the_decoder(broken: bytes) -> None:
    """It says what is wrong."""
    data = broken + b" " * LONG
    assert trimmed(data) is data


def test_lists_are_read_so() -> None:
    """As watches are."""
    labels = {f"x{number}": "x" for number in range(MANY)} | CHARGED
    body = b'{"metadata":{},"items":[' + text(labels=labels) + b"," + text() + b"]}"
    assert [pod.metadata.labels for pod in ListPage.read(PODS, body)] == [CHARGED, {}]


LONG_TEXTS = [f"{'x' * 100}{number}" for number in range(1000)]
DEMANDS: dict[str, Any] = {
    "nodeSelector": dict.fromkeys(LONG_TEXTS, ""),
    "affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1,
        "podAffinityTerm": {"topologyKey": text}} for text in LONG_TEXTS]}},
    "tolerations": [{"key": text} for text in LONG_TEXTS],
    "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": text,
        "whenUnsatisfiable": "DoNotSchedule"} for text in LONG_TEXTS],
    "volumes": [{"name": text, "emptyDir": {}} for text in LONG_TEXTS],
    "resourceClaims": [{"name": text, "resourceClaimName": "x"} for text in LONG_TEXTS],
    "schedulingGates": [{"name": f"x/{text}"} for text in LONG_TEXTS],
}  # fmt: skip
"""More of each field of a pod's spec than is read."""


@pytest.mark.parametrize("field", DEMANDS)
def test_a_demand_of_a_pod_that_is_too_long_is_cut(field: str) -> None:
    """The pod's room and node are as they were; one that waits for a node gets none where it demanded one."""
    containers = [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]
    spec = {field: DEMANDS[field], "nodeName": "node-0", "containers": containers}
    data = compact({"metadata": {"name": "one"}, "spec": spec})
    whole = msgspec.json.decode(data, type=Pod)
    pod = msgspec.json.decode(trimmed(data, "pods"), type=Pod)
    assert bytes(trimmed(data)) == data, "of other kinds these fields are others"
    assert len(trimmed(data, "pods")) < 1000
    assert (pod.spec.node_name, pod.spec.containers) == ("node-0", whole.spec.containers)
    demands = pod.spec.node_selector, pod.spec.affinity, pod.spec.scheduling_gates
    assert any(TOO_LARGE in str(each) for each in demands) == (field in {"nodeSelector", "affinity", "schedulingGates"})


@pytest.mark.parametrize("containers", ["containers", "initContainers"])
@pytest.mark.parametrize("field", ["command", "args", "env"])
def test_what_a_container_runs_is_cut_if_it_is_very_long(containers: str, field: str) -> None:
    """Nobody reads it of a pod that exists; the room of the pod is as it was, and a short neighbour, too."""
    many = [{"name": f"V{number}", "value": "x"} if field == "env" else "x" for number in range(3 * MANY)]
    room = {"resources": {"requests": {"cpu": "1"}}}
    spec = {containers: [{"name": "long", field: many, **room}, {"name": "short", field: many[:1], **room}]}
    data = compact({"metadata": {"name": "one"}, "spec": spec})
    found = msgspec.json.decode(trimmed(data, "pods"), type=Pod).spec
    whole = msgspec.json.decode(data, type=Pod).spec
    assert len(trimmed(data, "pods")) < 1000
    name = "init_containers" if containers == "initContainers" else "containers"
    long, short = getattr(found, name)
    assert (getattr(long, field), long.resources) == ([], getattr(whole, name)[0].resources)
    assert short == getattr(whole, name)[1]


@pytest.mark.parametrize("part", ["spec", "status"])
def test_a_pod_group_that_is_too_long_is_not_read(part: str) -> None:
    """Half of it would mean another gang; the list that it is in is read."""
    many = {"minTaskMember": {f"task-{number}": 1 for number in range(MANY)}}
    if part == "status":
        many = {"conditions": [{"type": "Scheduled", "status": "True"}] * MANY}
    data = compact({"metadata": {"name": "long", "namespace": "here"}, part: many})
    with pytest.raises(msgspec.ValidationError, match=f"{part}: .*at most 65536 bytes"):
        trimmed(data, "podgroups")
    assert bytes(trimmed(data)) == data, "of other kinds these fields are others"
    page = ListPage.read(POD_GROUPS, b'{"metadata":{},"items":[' + data + b',{"metadata":{"name":"short"}}]}')
    assert [group.metadata.name for group in page] == ["short"]
    assert page.left_out == ["here/long"]


def content(*items: dict[str, Any], **meta: str) -> bytes:
    """A list as the API server sends it."""
    return json.dumps({"kind": "List", "metadata": meta, "items": list(items)}).encode()


def test_items_say_what_they_are() -> None:
    """The API server leaves kind and version out of the items of built-in lists; whoever reads an item needs them."""
    page = ListPage.read(PODS, content({"metadata": {"name": "a"}}, resourceVersion="7", **{"continue": "next"}))
    (pod,), meta = page, page.metadata
    assert (pod.api_version, pod.kind, pod.metadata.name) == ("v1", "Pod", "a")
    assert (meta.resource_version, meta.continue_) == ("7", "next")


def test_an_empty_list_may_be_null() -> None:
    """Go writes an empty list so."""
    assert list(ListPage.read(PODS, b'{"metadata":{"resourceVersion":"1"},"items":null}')) == []


def test_an_odd_object_does_not_hide_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    """It is left out, and the log names it."""
    odd = {"metadata": {"name": "odd", "namespace": "ns"}, "status": {"phase": "Dreaming"}}
    others = [{"metadata": {"name": name}} for name in "ab"]
    page = ListPage.read(POD_GROUPS, content(others[0], odd, others[1], resourceVersion="7"))
    assert [group.metadata.name for group in page] == ["a", "b"]
    assert (len(page), page.metadata.resource_version) == (3, "7")
    assert "ns/odd" in capsys.readouterr().out


def test_garbage_is_not_an_empty_list() -> None:
    """What is not JSON raises."""
    with pytest.raises(msgspec.DecodeError):
        ListPage.read(PODS, b"oops")


@pytest.mark.parametrize(
    "obj", [{"metadata": {"name": "a"}}, Pod(metadata=ObjectMeta(name="a"))], ids=["mapping", "struct"]
)
def test_what_is_written_says_what_it_is(obj: Any) -> None:
    """Callers need not repeat kind and version."""
    assert content_of(PODS, obj) == {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}

"""Objects with a megabyte of labels, owners or finalizers are read without most of those."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api import names
from muster.api.kubernetes.core import PODS, Pod
from muster.kube.codec import Page
from muster.kube.lean import LONG, lean

MANY = 10_000
CHARGED = {names.QUEUE: 'the "best"', names.TASK_SPEC: "worker"}


def text(**metadata: Any) -> bytes:
    """A pod as the API server writes it."""
    content = {"metadata": {"name": "one", **metadata}, "spec": {"nodeName": "node-0"}}
    return json.dumps(content, separators=(",", ":")).encode()


def read(**metadata: Any) -> Pod:
    """The pod as it is read."""
    return msgspec.json.decode(lean(text(**metadata)), type=Pod)


def test_of_very_many_labels_those_are_kept_by_which_a_pod_is_charged() -> None:
    """Else a pod could leave its queue by more labels."""
    labels = {f"x{number}": "x" for number in range(MANY)}
    pod = read(labels=labels | CHARGED)
    assert pod.metadata.labels == CHARGED
    assert pod.spec.node_name == "node-0"
    assert read(labels=CHARGED | labels).metadata.labels == CHARGED


@pytest.mark.parametrize("part", ["ownerReferences", "finalizers"])
def test_very_many_owners_or_finalizers_are_none(part: str) -> None:
    """Nothing is done for them; the rest is as it was."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "x"}
    many = [owner if part == "ownerReferences" else f"x/y{number}" for number in range(MANY)]
    pod = read(labels=CHARGED, **{part: many})
    assert (pod.metadata.owner_references, pod.metadata.finalizers) == ([], [])
    assert pod.metadata.labels == CHARGED


@given(st.integers(0, 3000), st.integers(0, 200_000), st.booleans())
def test_all_else_is_as_it_was(labels: int, annotation: int, braces: bool) -> None:  # noqa: FBT001 - as hypothesis has it
    """Whatever is long in it."""
    metadata = {
        "labels": {f"x{number}": "y" for number in range(labels)},
        "annotations": {"long": ('{"finalizers":[' if braces else "a") * (annotation // 8)},
    }
    whole = text(**metadata)
    short = lean(whole)
    if len(json.dumps(metadata["labels"], separators=(",", ":"))) <= LONG:
        assert bytes(short) == whole
    assert msgspec.json.decode(short, type=Pod).metadata.annotations == metadata["annotations"]


@pytest.mark.parametrize("broken", [b"[1,", b'{"metadata":[]}', b'{"metadata":{"labels":' + b"[" * MANY])
def test_what_cannot_be_read_is_left_to_the_decoder(broken: bytes) -> None:
    """It says what is wrong."""
    data = broken + b" " * LONG
    assert lean(data) is data


def test_lists_are_read_so() -> None:
    """As watches are."""
    labels = {f"x{number}": "x" for number in range(MANY)} | CHARGED
    body = b'{"metadata":{},"items":[' + text(labels=labels) + b"," + text() + b"]}"
    assert [pod.metadata.labels for pod in Page.read(PODS, body)] == [CHARGED, {}]

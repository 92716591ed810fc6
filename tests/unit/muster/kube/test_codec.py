"""Objects are decoded strictly one by one: an odd one is left out, the others are not."""

import json
from typing import Any

import msgspec
import pytest

from muster.api.core import PODS, Pod
from muster.api.meta import ObjectMeta
from muster.api.scheduling import POD_GROUPS
from muster.kube.codec import content_of, decode_raw_list, items_of


def page(*items: dict[str, Any], **meta: str) -> bytes:
    """A list as the API server sends it."""
    return json.dumps({"kind": "List", "metadata": meta, "items": list(items)}).encode()


def test_items_say_what_they_are() -> None:
    """The API server leaves kind and version out of the items of built-in lists; whoever reads an item needs them."""
    read = decode_raw_list(page({"metadata": {"name": "a"}}, resourceVersion="7", **{"continue": "next"}))
    (pod,), meta = items_of(PODS, read), read.metadata
    assert (pod.api_version, pod.kind, pod.metadata.name) == ("v1", "Pod", "a")
    assert (meta.resource_version, meta.continue_) == ("7", "next")


def test_an_empty_list_may_be_null() -> None:
    """Go writes an empty list so."""
    assert list(items_of(PODS, decode_raw_list(b'{"metadata":{"resourceVersion":"1"},"items":null}'))) == []


def test_an_odd_object_does_not_hide_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    """It is left out, and the log names it."""
    odd = {"metadata": {"name": "odd", "namespace": "ns"}, "status": {"phase": "Dreaming"}}
    read = decode_raw_list(page({"metadata": {"name": "a"}}, odd, {"metadata": {"name": "b"}}, resourceVersion="7"))
    assert [group.metadata.name for group in items_of(POD_GROUPS, read)] == ["a", "b"]
    assert read.metadata.resource_version == "7"
    assert "ns/odd" in capsys.readouterr().out


def test_garbage_is_not_an_empty_list() -> None:
    """What is not JSON raises."""
    with pytest.raises(msgspec.DecodeError):
        decode_raw_list(b"oops")


@pytest.mark.parametrize(
    "obj", [{"metadata": {"name": "a"}}, Pod(metadata=ObjectMeta(name="a"))], ids=["mapping", "struct"]
)
def test_what_is_written_says_what_it_is(obj: Any) -> None:
    """Callers need not repeat kind and version."""
    assert content_of(PODS, obj) == {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}

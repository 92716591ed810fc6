"""Objects are decoded strictly one by one: an odd one is left out, the others are not."""

import json
from typing import Any

import msgspec
import pytest

from muster.api.kubernetes.core import PODS, Pod
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.codec import Page, content_of


def content(*items: dict[str, Any], **meta: str) -> bytes:
    """A list as the API server sends it."""
    return json.dumps({"kind": "List", "metadata": meta, "items": list(items)}).encode()


def test_items_say_what_they_are() -> None:
    """The API server leaves kind and version out of the items of built-in lists; whoever reads an item needs them."""
    page = Page.read(PODS, content({"metadata": {"name": "a"}}, resourceVersion="7", **{"continue": "next"}))
    (pod,), meta = page, page.metadata
    assert (pod.api_version, pod.kind, pod.metadata.name) == ("v1", "Pod", "a")
    assert (meta.resource_version, meta.continue_) == ("7", "next")


def test_an_empty_list_may_be_null() -> None:
    """Go writes an empty list so."""
    assert list(Page.read(PODS, b'{"metadata":{"resourceVersion":"1"},"items":null}')) == []


def test_an_odd_object_does_not_hide_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    """It is left out, and the log names it."""
    odd = {"metadata": {"name": "odd", "namespace": "ns"}, "status": {"phase": "Dreaming"}}
    others = [{"metadata": {"name": name}} for name in "ab"]
    page = Page.read(POD_GROUPS, content(others[0], odd, others[1], resourceVersion="7"))
    assert [group.metadata.name for group in page] == ["a", "b"]
    assert (len(page), page.metadata.resource_version) == (3, "7")
    assert "ns/odd" in capsys.readouterr().out


def test_garbage_is_not_an_empty_list() -> None:
    """What is not JSON raises."""
    with pytest.raises(msgspec.DecodeError):
        Page.read(PODS, b"oops")


@pytest.mark.parametrize(
    "obj", [{"metadata": {"name": "a"}}, Pod(metadata=ObjectMeta(name="a"))], ids=["mapping", "struct"]
)
def test_what_is_written_says_what_it_is(obj: Any) -> None:
    """Callers need not repeat kind and version."""
    assert content_of(PODS, obj) == {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}

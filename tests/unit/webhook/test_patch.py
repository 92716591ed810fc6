"""Patches are built operation by operation and mean what an independent library makes of them."""

from typing import Any

import jsonpointer
import pytest
from hypothesis import given
from hypothesis import strategies as st
from webhook_world import apply

from webhook.patch import Patch, pointer


@given(st.lists(st.text(max_size=8), min_size=1, max_size=4))
def test_pointer_escapes(parts: list[str]) -> None:
    """A pointer to any keys is read back as the same keys."""
    assert jsonpointer.JsonPointer(pointer(*parts)).parts == parts


@pytest.mark.parametrize(("document", "expected"), [
    ({}, {"metadata": {"labels": {"muster.dev/gang": "g"}}}),
    ({"metadata": {}}, {"metadata": {"labels": {"muster.dev/gang": "g"}}}),
    ({"metadata": {"labels": None}}, {"metadata": {"labels": {"muster.dev/gang": "g"}}}),
    ({"metadata": {"labels": {"a/b": "c"}}}, {"metadata": {"labels": {"a/b": "c", "muster.dev/gang": "g"}}}),
    ({"metadata": {"labels": {"muster.dev/gang": "old"}}}, {"metadata": {"labels": {"muster.dev/gang": "g"}}}),
])  # fmt: skip
def test_set_makes_missing_parents(document: dict[str, Any], expected: dict[str, Any]) -> None:
    """A member is set whatever is missing above it; null counts as missing."""
    patch = Patch(document)
    patch.set("metadata", "labels", "muster.dev/gang", value="g")
    assert apply(document, patch.operations) == expected


@pytest.mark.parametrize("document", [{}, {"spec": {}}, {"spec": {"gates": None}}, {"spec": {"gates": []}}])
def test_append_makes_the_list(document: dict[str, Any]) -> None:
    """Elements are appended in order, to a list that exists or not."""
    patch = Patch(document)
    patch.append_item("spec", "gates", value={"name": "a"})
    patch.append_item("spec", "gates", value={"name": "b"})
    assert apply(document, patch.operations) == {"spec": {"gates": [{"name": "a"}, {"name": "b"}]}}


def test_parents_are_made_once() -> None:
    """A second member under a new map does not make the map again."""
    patch = Patch({})
    patch.set("a", "b", value=1)
    patch.set("a", "c", value=2)
    assert apply({}, patch.operations) == {"a": {"b": 1, "c": 2}}


def test_list_elements_are_addressed_by_number() -> None:
    """Members of list elements are set in place."""
    patch = Patch({"tasks": [{"name": "a"}, {}]})
    patch.set("tasks", 1, "name", value="b")
    assert patch.operations == [{"op": "add", "path": "/tasks/1/name", "value": "b"}]


@pytest.mark.parametrize("path", [("spec", "weight"), ("list", "weight"), ("spec", "deep", "er"), ("map", 0)])
def test_nothing_is_added_below_another_shape(path: tuple[str | int, ...]) -> None:
    """The API server could not apply it; what stands beside it is added."""
    patch = Patch({"spec": "text", "list": [1], "map": {}})
    patch.set(*path, value=1)
    patch.append_item(*path, value=1)
    patch.set("map", "a", value=1)
    assert [each["path"] for each in patch.operations] == ["/map/a"]

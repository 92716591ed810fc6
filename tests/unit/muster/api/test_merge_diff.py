"""The merge patch from one object to another."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from merge_patches import applied

from muster.api.merge_diff import difference
from muster.api.volcano.batch import JobStatus

TREES = st.recursive(
    st.integers(0, 3) | st.lists(st.integers(0, 2), max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
)
OBJECTS = st.dictionaries(st.sampled_from("abc"), TREES, max_size=3)


@given(OBJECTS, OBJECTS)
def test_difference_leads_from_one_to_the_other(old: dict[str, Any], new: dict[str, Any]) -> None:
    """Applied as a merge patch the difference gives the new object, and it is empty only for equal ones."""
    patch = difference(old, new)
    assert applied(old, patch) == new
    assert (patch == {}) == (old == new)


def test_a_patch_replaces_what_is_no_object_and_takes_out_nulls() -> None:
    """The examples of RFC 7386."""
    assert applied({"a": "b", "c": {"d": "e", "f": "g"}}, {"a": "z", "c": {"f": None}}) == {"a": "z", "c": {"d": "e"}}
    assert applied({"a": ["b"]}, {"a": {"b": "c", "d": None}}) == {"a": {"b": "c"}}
    assert applied("foo", {"a": {"bb": {"ccc": None}}}) == {"a": {"bb": {}}}


def test_a_field_that_has_its_default_again_is_removed() -> None:
    """Structs leave defaults out, and the old value must go all the same."""
    assert difference(JobStatus(running=3), JobStatus()) == {"running": None}

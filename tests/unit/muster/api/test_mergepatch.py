"""Merge patches lead from one object to another."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from muster.api.mergepatch import difference


def apply_merge(target: Any, patch: Any) -> Any:
    """RFC 7386, as the API server does it."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = apply_merge(result.get(key), value)
    return result


TREES = st.recursive(
    st.integers(0, 3) | st.lists(st.integers(0, 2), max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
)
OBJECTS = st.dictionaries(st.sampled_from("abc"), TREES, max_size=3)


@given(OBJECTS, OBJECTS)
def test_difference_leads_from_one_to_the_other(old: dict[str, Any], new: dict[str, Any]) -> None:
    """Applied as a merge patch the difference gives the new object, and it is empty only for equal ones."""
    patch = difference(old, new)
    assert apply_merge(old, patch) == new
    assert (patch == {}) == (old == new)

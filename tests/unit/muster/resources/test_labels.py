"""Label selectors in kubectl's text form mean what they mean to the API server."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.resources.labels import read_selector

MATCHES = {
    "": ({}, True),
    "team=vision": ({"team": "vision"}, True),
    "team == vision": ({"team": "speech"}, False),
    "team!=vision": ({}, True),
    "team=vision,env in (a, b)": ({"team": "vision", "env": "b"}, True),
    "team=vision, env in (a,b)": ({"team": "vision", "env": "c"}, False),
    "env notin (a,b)": ({"env": "b"}, False),
    "env notin (c)": ({}, True),
    "example.com/team": ({"example.com/team": ""}, True),
    "!team": ({"team": "x"}, False),
    "! team": ({}, True),
    "team=": ({"team": ""}, True),
}
MALFORMED = [
    "team in (a", "team in a", "a b", "=x", ",", "team=a,", "team in (a))", "Q_/x=y", "a=b=c", "team=-x", "(a)"
]  # fmt: skip


@pytest.mark.parametrize("text", MATCHES)
def test_a_selector_selects_by_labels(text: str) -> None:
    """A label that is missing has none of the values that `notin` and `!=` exclude."""
    labels, wanted = MATCHES[text]
    assert all(each.holds(labels) for each in read_selector(text)) is wanted


@pytest.mark.parametrize("text", MALFORMED)
def test_a_malformed_selector_is_an_error_that_says_what_is_wrong(text: str) -> None:
    """It never selects everything."""
    with pytest.raises(ValueError, match=r"not a condition|do not match|of a label"):
        read_selector(text)


@given(st.text(alphabet="ab=!(), in\n-/", max_size=40))
def test_any_text_is_read_or_refused_with_a_reason(text: str) -> None:
    """Admins write anything; what is read selects by its conditions."""
    conditions = None
    with suppress(ValueError):
        conditions = read_selector(text)
    assert conditions is None or conditions or not text.strip()

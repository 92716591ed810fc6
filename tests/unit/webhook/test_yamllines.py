"""Objects are written line by line, and read back as they were."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from webhook.offline.manifests import yaml_lines

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(
    SCALARS
    | st.sampled_from(["a\nb\n", " a\nb\n", "a\n\nb\n", "a\n\n", "#!/bin/sh\necho: 'x'\n", "yes", "0x1", "2020-01-01"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


def yaml_text(value: Any) -> str:
    """The lines of a value as one text."""
    return "".join(f"{line.text}\n" for line in yaml_lines(value))


@given(VALUES)
def test_what_is_written_is_read_back(value: Any) -> None:
    """Any JSON value comes back from an independent reader."""
    assert yaml.safe_load(yaml_text(value)) == value


def test_each_line_knows_what_it_shows() -> None:
    """A line has the path of what begins on it; the first line of an element stands for the element."""
    value = {"spec": {"containers": [{"name": "a", "args": ["x"]}], "script": "a\nb\n"}}
    shown = [(line.text, line.path) for line in yaml_lines(value)]
    assert shown == [
        ("spec:", ("spec",)),
        ("  containers:", ("spec", "containers")),
        ("  - name: a", ("spec", "containers", 0)),
        ("    args:", ("spec", "containers", 0, "args")),
        ("    - x", ("spec", "containers", 0, "args", 0)),
        ("  script: |", ("spec", "script")),
        ("    a", ("spec", "script")),
        ("    b", ("spec", "script")),
    ]


@pytest.mark.parametrize("word", ["y", "no", "1e3", "0o10", "null", "~", "2026-01-01"])
def test_texts_that_kubectl_would_take_for_something_else(word: str) -> None:
    """They are in quotes."""
    assert yaml_text({"key": word}) == f"key: '{word}'\n"

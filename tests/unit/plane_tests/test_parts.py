"""Parts of the tests together are all of them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from parts import Part

FILES = st.sets(st.from_regex(r"[a-z]{1,3}/test_[a-z]{1,3}\.py", fullmatch=True).map(Path))


@given(FILES, st.integers(1, 5))
def test_each_file_is_in_one_part(files: set[Path], of: int) -> None:
    """Whatever the files are called."""
    parts = [Part(which, of).has(files) for which in range(1, of + 1)]
    assert set.union(*parts) == files
    assert sum(map(len, parts)) == len(files)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize("text", ["", "1", "0/3", "4/3", "a/3", "1/0", "-1/3"])
def test_what_is_no_part_is_an_error(text: str) -> None:
    """No part would be no tests."""
    with pytest.raises(ValueError, match="is no part: K/N"):
        Part.read(text)

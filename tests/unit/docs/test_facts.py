"""Facts in the documentation come from the code."""

import pytest

from musterctl.facts import FACTS, UnknownFactError, filled


def test_a_fact_is_written_anew() -> None:
    """Whatever stands between the marks, also over several lines."""
    page = "waits <!--fact patience-->an\nhour<!--/fact--> and <!--fact\npatience--><!--/fact-->"
    mark = "<!--fact patience-->5 minutes<!--/fact-->"
    assert filled(page, {"patience": lambda: "5 minutes"}) == f"waits {mark} and {mark}"


def test_an_unknown_fact_lists_those_that_exist() -> None:
    """A typo in a page fails `make generate`."""
    with pytest.raises(UnknownFactError, match="'patince'; known facts are patience"):
        filled("<!--fact patince--><!--/fact-->", {"patience": str})


@pytest.mark.parametrize("name", sorted(FACTS))
def test_every_fact_can_be_told(name: str) -> None:
    """No fact is empty, and none closes its own comment."""
    text = FACTS[name]()
    assert text.strip()
    assert "<!--" not in text

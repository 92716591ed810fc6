"""docs/protocol.md says what the model checks."""

import re
from pathlib import Path

from interleavings import defects, properties, world
from interleavings.world import Faults

PAGE = Path(__file__).parents[2] / "docs" / "protocol.md"


def rows(table: str) -> list[str]:
    """The first cells of a table of the page."""
    text = PAGE.read_text().partition(f"<!-- {table} -->")[2].partition("<!-- end -->")[0]
    return re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE)


def test_the_steps_are_those_of_the_model() -> None:
    """Each kind of step is in the table, and none that does not exist."""
    source = Path(world.__file__).read_text()
    assert sorted(rows("steps")) == sorted(set(re.findall(r'Step\(\s*"([a-z ]+)"', source)))


def test_the_faults_are_those_of_the_model() -> None:
    """In their order."""
    assert rows("faults") == [field.replace("_", " ") for field in Faults._fields]


def test_the_invariants_are_those_of_the_model() -> None:
    """Each is a check that is called."""
    checks = [each.__name__.removeprefix("_") for each in (*properties.ALWAYS, *properties.OF_REQUESTS)]
    assert sorted(rows("invariants")) == sorted([*(check.replace("_", " ") for check in checks), "at rest", "done"])


def test_the_number_of_defects_is_right() -> None:
    """In words."""
    assert len(defects.ALL) == 14
    assert "fourteen defects" in PAGE.read_text()

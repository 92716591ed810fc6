"""A seed names a sample, which changes little when the product changes little."""

import pytest

from tests.mutants.__main__ import EQUIVALENT
from tests.mutants.sampling import is_valid, key_of, population, read_equivalents, sample, stale
from tests.mutants.sites import Site

FILES = {
    "a/one.py": "".join(f"def f{n}(a, b):\n    return a < b and a + {n}\n" for n in range(8)),
    "b/two.py": "def g(a):\n    a.clear()\n    a.clear()\n",
}


def sampled(files: dict[str, str], count: int, seed: int) -> list[Site]:
    """A sample of all mutants of the files."""
    return sample(population(files), files, count=count, seed=seed)


def test_a_seed_names_a_sample() -> None:
    """The same one each time; other seeds have others."""
    assert sampled(FILES, 10, 1) == sampled(FILES, 10, 1)
    assert sampled(FILES, 10, 1) != sampled(FILES, 10, 2)


VALID = [site for site in population(FILES) if is_valid(site, FILES[site.file])]


@pytest.mark.parametrize("count", [0, 1, 30, len(VALID), len(VALID) + 1])
def test_a_sample_is_of_different_mutants(count: int) -> None:
    """All of which are programs; all that there are, if it wants more."""
    chosen = {(site.file, site.edit) for site in sampled(FILES, count, 1)}
    assert len(chosen) == min(count, len(VALID))
    assert chosen <= {(site.file, site.edit) for site in VALID}


def test_another_line_leaves_a_sample() -> None:
    """But for those mutants of the new line that come before others."""
    before = {(site.text, site.becomes, site.nth) for site in sampled(FILES, 30, 1)}
    changed = FILES | {"a/one.py": "def new(a):\n    return not a\n\n\n" + FILES["a/one.py"]}
    after = {(site.text, site.becomes, site.nth) for site in sampled(changed, 30, 1)}
    assert len(before & after) >= 28


LISTED = """
[[equivalent]]
file = "a/one.py"
operator = "boundary"
line = "return a < b and a + 3"
becomes = "return a <= b and a + 3"
reason = "they are never equal"
"""


def test_equivalents_are_known_by_their_lines() -> None:
    """Wherever the line is now."""
    listed = read_equivalents(LISTED)
    known = [site for site in population(FILES) if key_of(site) in {one.key for one in listed}]
    assert [(site.line, site.edit.operator) for site in known] == [(8, "boundary")]


def test_a_stale_entry() -> None:
    """One whose line reads otherwise now."""
    listed = read_equivalents(LISTED)
    assert stale(listed, population(FILES)) == []
    assert stale(listed, population({"a/one.py": FILES["a/one.py"].replace("a + 3", "a + 33")})) == listed


def test_the_list_of_equivalents_reads() -> None:
    """A merge that loses a heading joins two entries, and only CI's mutation run would detect it."""
    listed = read_equivalents(EQUIVALENT.read_text(encoding="utf-8"))
    assert listed
    assert len({one.key for one in listed}) == len(listed)


def test_an_entry_has_a_reason() -> None:
    """Which the error asks for."""
    with pytest.raises(ValueError, match="reason"):
        read_equivalents(LISTED.replace('reason = "they are never equal"', ""))

"""A run in which all tests were skipped does not pass."""

import pytest

pytest_plugins = ["pytester"]
SKIPPED = "import pytest\n\n\n@pytest.mark.skip(reason='install a moon')\ndef test_moon():\n    pass\n"
PASSES = "\n\ndef test_sun():\n    pass\n"
FAILS = "\n\ndef test_sun():\n    raise OSError\n"


@pytest.mark.parametrize("verbosity", ["--verbosity=0", "--quiet"])
@pytest.mark.parametrize(("more", "code"), [("", 2), (PASSES, 0), (FAILS, 1)], ids=["alone", "passes", "fails"])
def test_nothing_is_tested(pytester: pytest.Pytester, more: str, code: int, verbosity: str) -> None:
    """It ends with 2, and says in one line what is missing; but only if there was nothing else."""
    pytester.makepyfile(SKIPPED + more)
    ended = pytester.runpytest_inprocess("-p", "lacking", "-p", "no:cacheprovider", verbosity)
    assert ended.ret == code
    assert ("nothing is tested: install a moon" in ended.outlines) == (code == 2)

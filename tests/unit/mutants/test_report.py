"""A report has a score for each package, and lists the survivors."""

from tests.mutants import report
from tests.mutants.sampling import read_equivalents
from tests.mutants.sites import sites
from tests.mutants.verdicts import Fate, Verdict


def verdict(file: str, fate: Fate, covering: int = 0, left_out: int = 0) -> Verdict:
    """One of a mutant of `return a < b`."""
    [site] = [site for site in sites(file, "def f(a, b):\n    return a < b\n") if site.edit.operator == "boundary"]
    return Verdict(site, fate, covering=covering, left_out=left_out)


def test_scores_by_package() -> None:
    """Equivalents do not count; what no test covers does. Explanations and repetitions are counted apart."""
    found, survived, uncovered, same = Fate.KILLED, Fate.SURVIVED, Fate.UNCOVERED, Fate.EQUIVALENT
    verdicts = [
        *(verdict("extender/main.py", fate) for fate in (found, found, survived, same)),
        verdict("extender/explain/gang.py", uncovered),
        verdict("webhook/main.py", found),
        verdict("certs/issuing.py", same),
    ]
    assert report.table(verdicts).split("\n")[2:] == [
        "| certs | 1 | 1 | 0 | 0 | 0 |  |",
        "| extender | 4 | 1 | 2 | 1 | 0 | 67% |",
        "| extender/explain | 1 | 0 | 0 | 0 | 1 | 0% |",
        "| webhook | 1 | 0 | 1 | 0 | 0 | 100% |",
        "| all | 7 | 2 | 3 | 1 | 1 | 60% |",
    ]


def test_survivors() -> None:
    """With what an entry of the list of equivalents needs, and how many tests had a chance."""
    verdicts = [
        verdict("b.py", Fate.SURVIVED, 7, 2),
        verdict("c.py", Fate.KILLED, 1),
        verdict("a.py", Fate.UNCOVERED),
        verdict("d.py", Fate.EQUIVALENT),
    ]
    assert report.survivors(verdicts).split("\n") == [
        "a.py:2 [boundary] < → <= (covered by no test)",
        "  - return a < b",
        "  + return a <= b",
        "b.py:2 [boundary] < → <= (7 tests cover it, 2 of which were not run)",
        "  - return a < b",
        "  + return a <= b",
    ]


def test_stale_entries() -> None:
    """By file and line."""
    [entry] = read_equivalents(
        '[[equivalent]]\nfile = "a.py"\noperator = "sign"\nline = "a = -b"\nbecomes = "a = (b)"\nreason = "-"\n'
    )
    assert report.outdated([entry]) == "a.py: no line with a mutant 'sign' says: a = -b"

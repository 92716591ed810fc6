"""Tests are run on a mutant until one finds it, unless that one fails on the product too."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.mutants.killing import IMPORT, SWAP, Job, Outcome
from tests.mutants.recording import Covered
from tests.mutants.sites import Site, sites
from tests.mutants.verdicts import Examiner, Fate, Verdict, plan

TEXT = "A = 1\n\ndef f(a):\n    return a < 0\n"
OUTSIDE, INSIDE = (next(site for site in sites("a.py", TEXT) if site.line == line) for line in (1, 4))
DURATIONS = {"fast": 0.1, "slow": 5.0, "slower": 50.0, "slowest": 70.0}


class Worker:
    """Tests that fail on the mutant, on the product, and on a mutant that a new start has; and the jobs it has had."""

    def __init__(
        self, mutant: set[str] = frozenset(), product: set[str] = frozenset(), fresh: set[str] = frozenset()
    ) -> None:
        self.mutant, self.product, self.fresh = mutant, product, fresh
        self.jobs: list[Job] = []

    def run(self, job: Job) -> Outcome:
        """Fail with the first of them, as the real one does."""
        self.jobs.append(job)
        fails = self.product | ((self.fresh if job.is_fresh else self.mutant) if job.file else set())
        special = {IMPORT, SWAP} & fails
        return Outcome(next((test for test in [*special, *job.tests] if test in fails), ""), ran=len(job.tests))


def examined(worker: Worker, tests: set[str], *, at_import: bool = False, site: Site = INSIDE) -> Verdict:
    """The verdict about a mutant that the tests cover."""
    examiner = Examiner(worker.run, DURATIONS, set(), {"a.py": TEXT})
    return examiner.examine(site, "", Covered(Counter(tests), at_import))


FAST_AND_SLOW = {"fast", "slow"}


@pytest.mark.parametrize(("worker", "tests", "given", "found", "fresh"), [
    (Worker(mutant={"slow"}), FAST_AND_SLOW, {}, (Fate.KILLED, "slow", 2), [False]),
    (Worker(fresh={"slow"}), FAST_AND_SLOW, {}, (Fate.SURVIVED, "", 2), [False]),
    (Worker(), set(), {}, (Fate.UNCOVERED, "", 0), []),
    (Worker(mutant={"slow"}, product={"fast"}), FAST_AND_SLOW, {}, (Fate.KILLED, "slow", 2), None),
    (Worker(product={"fast"}), FAST_AND_SLOW, {}, (Fate.SURVIVED, "", 2), None),
    (Worker(fresh={"slow"}), {"slow"}, {"at_import": True}, (Fate.KILLED, "slow", 1), [False, True]),
    (Worker(fresh={IMPORT}), {"slow"}, {"site": OUTSIDE}, (Fate.KILLED, IMPORT, 1), [True]),
    (Worker(mutant={SWAP}, fresh={"slow"}), {"slow"}, {}, (Fate.KILLED, "slow", 1), None),
    (Worker(mutant={SWAP}), {"slow"}, {}, (Fate.SURVIVED, "", 1), None),
], ids=["one finds it", "none finds it", "none covers it", "others than one that always fails find it", "or do not",
    "a line that imports run too needs a new start, too", "one outside of functions at once",
    "functions that cannot be swapped need one", "which may find nothing"])  # fmt: skip
def test_verdicts(worker: Worker, tests: set[str], given: Any, found: Any, fresh: list[bool] | None) -> None:
    """What finds a mutant is named; no import runs the line of a function, so that one run is enough for it."""
    verdict = examined(worker, tests, **given)
    assert (verdict.fate, verdict.by, verdict.covering) == found
    assert fresh is None or [job.is_fresh for job in worker.jobs if job.file] == fresh
    assert verdict.by or worker.product or all(job.file for job in worker.jobs)


def test_a_plan_is_fastest_first() -> None:
    """So that most mutants are found in milliseconds; a test that is known to fail is not in it."""
    assert plan(Covered(Counter({"slow", "fast", "slower"}), at_import=False), DURATIONS, {"slow"}).tests == [
        "fast",
        "slower",
    ]


@pytest.mark.parametrize(("near", "other", "chosen"), [(0.2, 0.2, "near"), (0.2, 0.1, "near"), (5.0, 0.1, "other")])
def test_a_plan_prefers_tests_of_the_folder(near: float, other: float, chosen: str) -> None:
    """Unless they are much slower: those of the whole product would fill the time of a line that all tests run."""
    duration_s = {"tests/unit/a/b/test_near.py::t": near, "tests/unit/b/a/test_other.py::t": other}
    [test] = plan(Covered(Counter([*duration_s]), at_import=False), duration_s, (), file="a/b/module.py", count=1).tests
    assert chosen in test


@given(st.dictionaries(st.sampled_from(sorted(DURATIONS)), st.integers(1, 9), min_size=1), st.integers(1, 4))
def test_a_plan_has_limits(tests: dict[str, int], count: int) -> None:
    """A limit of time, except for the first test, and of the number of tests; the others are counted."""
    made = plan(Covered(Counter(tests), at_import=False), DURATIONS, [], count=count)
    assert 1 <= len(made.tests) <= count
    assert len(made.tests) + made.left_out == len(tests)
    assert len(made.tests) == 1 or sum(DURATIONS[test] for test in made.tests) <= 60
    assert made.tests == sorted(made.tests, key=lambda test: DURATIONS[test])


def test_tests_that_cannot_be_started() -> None:
    """Are an error, as otherwise all mutants would survive."""
    with pytest.raises(RuntimeError, match="was started"):
        Examiner(lambda _: Outcome(), DURATIONS, set(), {"a.py": TEXT}).examine(
            INSIDE, "", Covered(Counter({"fast"}), at_import=False)
        )

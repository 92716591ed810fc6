"""Verdicts on mutants: the tests that are run on each, and whether one of them kills it."""

import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import takewhile

from msgspec.structs import replace

from tests.mutants.clones import TIER
from tests.mutants.killing import IMPORT, SWAP, Job, Outcome
from tests.mutants.recording import Covered
from tests.mutants.sites import Site

# Tests of one mutant, by what they took when they were recorded: the rest of them is left out.
_LIMIT_S = 60.0
# A new process collects the files of tests first.
_FRESH_TESTS = 200


class Fate(enum.Enum):
    """The result for a mutant."""

    KILLED = "killed"
    SURVIVED = "survived"
    UNCOVERED = "covered by no test"
    EQUIVALENT = "listed as equivalent"


@dataclass(frozen=True)
class Verdict:
    """A mutant with its fate: `by` which test, of how many that cover it, of which some are `left_out`."""

    site: Site
    fate: Fate
    by: str = ""
    covering: int = 0
    left_out: int = 0


@dataclass(frozen=True)
class Plan:
    """Tests in the order in which they are run, fastest first, and how many more there are."""

    tests: list[str]
    left_out: int
    expected_s: float


def plan(
    covered: Covered, duration_s: dict[str, float], broken: Iterable[str], *, file: str = "", count: int | None = None
) -> Plan:
    """Choose tests for a mutant of a file: if there are too many, near ones with most lines in little time."""
    usable = set(covered.tests) - set(broken)
    worth = {test: covered.tests[test] * _nearness(test, file) / (duration_s[test] + 0.05) for test in usable}
    ranked = sorted(usable, key=lambda test: (-worth[test], test))
    tests: list[str] = []
    expected_s = 0.0
    for test in ranked[:count]:
        if expected_s + duration_s[test] <= _LIMIT_S or not tests:
            tests.append(test)
            expected_s += duration_s[test]
    return Plan(sorted(tests, key=lambda test: duration_s[test]), len(usable) - len(tests), expected_s)


def _nearness(test: str, file: str) -> int:
    """Return the number of folders of the tier that the file of a test shares with a file of the product, and 1."""
    folders = test.partition("::")[0].removeprefix(f"{TIER}/").split("/")[:-1]
    pairs = zip(folders, file.split("/")[:-1], strict=False)
    return 1 + sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


class Examiner:
    """Runs tests on mutants with a worker's `run`. A test that also fails on the product does not count."""

    def __init__(
        self, run: Callable[[Job], Outcome], duration_s: dict[str, float], broken: set[str], product: dict[str, str]
    ) -> None:
        self._run = run
        self._duration_s = duration_s
        self._broken = broken
        self._product = product
        self._sound: set[str] = set()

    def examine(self, site: Site, after: str, covered: Covered) -> Verdict:
        """Run the tests that cover a mutant, whose file has the text `after`, until one kills it."""
        if not set(covered.tests) - self._broken:
            return Verdict(site, Fate.UNCOVERED)
        starts = [True] if site.names else [False, True]
        for is_fresh in starts:
            found, left_out = self._find(site, after, covered, is_fresh=is_fresh)
            if found != SWAP and (found or not covered.at_import):
                break
        fate = Fate.KILLED if found else Fate.SURVIVED
        return Verdict(site, fate, found, len(covered.tests), left_out)

    def _find(self, site: Site, after: str, covered: Covered, *, is_fresh: bool) -> tuple[str, int]:
        """Return the test that finds the mutant, if any, and how many were left out."""
        while True:
            count = _FRESH_TESTS if is_fresh else None
            tried = plan(covered, self._duration_s, self._broken, file=site.file, count=count)
            if not tried.tests:
                return "", 0  # all have turned out to fail on the product, too
            longest_s = max((self._duration_s[test] for test in tried.tests), default=0.0)
            job = Job(
                tried.tests,
                cpu_s=int((60 if is_fresh else 20) + 3 * tried.expected_s),
                wait_s=int(30 + 10 * longest_s),
                file=site.file,
                before=self._product[site.file],
                after=after,
                is_fresh=is_fresh,
            )
            outcome = self._run(job)
            if not outcome.failed and outcome.end != "hangs" and not outcome.ran:
                raise RuntimeError(f"no test of {job.tests[:3]} was started: see the worker's log")
            if not outcome.failed or outcome.failed == SWAP or self._is_sound(outcome.failed, job):
                return " ".join(filter(None, [outcome.failed, outcome.end])), tried.left_out
            if outcome.failed == IMPORT:
                raise RuntimeError(f"{site.file} cannot be imported as it is, for {tried.tests[0]}")
            self._broken.add(outcome.failed)

    def _is_sound(self, test: str, job: Job) -> bool:
        """Return true if the test passes on the product; if imports failed, if the first of the tests does."""
        test = job.tests[0] if test == IMPORT else test
        if test not in self._sound and self._run(replace(job, tests=[test], file="", before="", after="")).failed:
            return False
        self._sound.add(test)
        return True

"""Tests that may fail once, as tests/flaky.toml lists them, until 14 days after their last failure. Pure."""

import datetime as dt
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FILE = Path("tests/flaky.toml")
KEPT_DAYS = 14
"""Number of days after its last failure for which a test may stay in the list."""


UNLISTED = 2
"""Maximum number of failing tests of a step that have a second chance without being listed. To be set to 0 once twenty
runs in a row needed none."""


@dataclass(frozen=True)
class Flaky:
    """A test that has failed by chance, the day of its last failure, and the suspected cause."""

    test: str
    date: dt.date
    cause: str

    def is_of(self, test: str) -> bool:
        """Return True if this is the name of the test; xdist may append @ and the name of its group."""
        return test == self.test or test.startswith(f"{self.test}@")


def read(text: str) -> list[Flaky]:
    """Return the tests that the file lists; ValueError names an entry that lacks a key."""
    found = []
    for entry in tomllib.loads(text).get("flaky", []):
        if set(entry) != {"test", "date", "cause"} or type(entry["date"]) is not dt.date or not entry["cause"]:
            raise ValueError(f"{FILE}: {entry} is not a test with a date (2026-11-28) and a cause")
        found.append(Flaky(**entry))
    return found


def overdue(listed: Sequence[Flaky], today: dt.date) -> list[str]:
    """Return a sentence for each test that has been listed for too long."""
    advice = "remove it, or renew its date with the failure that you have seen"
    return [
        f"{FILE}: {each.test} has not failed since {each.date}: {advice}"
        for each in listed
        if today - each.date > dt.timedelta(days=KEPT_DAYS)
    ]


def unlisted(listed: Sequence[Flaky], failed: Sequence[str]) -> list[str]:
    """Return the failed tests that are not listed."""
    return [test for test in failed if not any(each.is_of(test) for each in listed)]


def files(failed: Sequence[str]) -> list[str]:
    """Return the files of these tests. Whole files run again, because the tests of a file may share a plane."""
    return sorted({test.partition("::")[0] for test in failed})

"""Readers of a step's log: requirements that were missing, and skipped tests. Pure."""

import re
from collections import Counter

NOTHING = "nothing is tested: "
"""Beginning of the last line of a target that ends with exit code 2 because this machine lacks something that its tests
need."""
_INSTALL = re.compile(r"`apt-get install ([a-z0-9.+ -]+)`")
_SKIPPED = re.compile(r"^SKIPPED \[(\d+)\] \S+: (.*)$", re.MULTILINE)


def lacking(log: str) -> str:
    """Return the reason why nothing could be tested; empty if something was tested, or if the step failed otherwise."""
    return next((line.removeprefix(NOTHING) for line in log.splitlines() if line.startswith(NOTHING)), "")


def packages(reason: str) -> list[str]:
    """Return the names of Debian packages that the reason contains."""
    found = _INSTALL.search(reason)
    return found[1].split() if found else []


def skipped(log: str) -> Counter[str]:
    """Return the number of skipped tests by reason, from pytest's summary."""
    counts = Counter[str]()
    for number, reason in _SKIPPED.findall(log):
        counts[reason] += int(number)
    return counts

"""Readers of a step's log: requirements that were missing, and skipped tests. Pure."""

import re
from collections import Counter

NOTHING = "nothing is tested: "
"""How the line begins with which a target ends, beside exit code 2, where this machine lacks what its tests need."""
_INSTALL = re.compile(r"`apt-get install ([a-z0-9.+ -]+)`")
_SKIPPED = re.compile(r"^SKIPPED \[(\d+)\] \S+: (.*)$", re.MULTILINE)


def lacking(log: str) -> str:
    """Return why nothing could be tested; empty if something was, or failed otherwise."""
    return next((line.removeprefix(NOTHING) for line in log.splitlines() if line.startswith(NOTHING)), "")


def packages(reason: str) -> list[str]:
    """Return Debian's packages that the reason names."""
    found = _INSTALL.search(reason)
    return found[1].split() if found else []


def skipped(log: str) -> Counter[str]:
    """Return the number of tests that were skipped, by reason, as pytest's summary has them."""
    counts = Counter[str]()
    for number, reason in _SKIPPED.findall(log):
        counts[reason] += int(number)
    return counts

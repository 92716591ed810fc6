"""Scores by package, and the surviving mutants."""

from collections import defaultdict
from collections.abc import Iterable

from tests.mutants.sampling import Equivalent
from tests.mutants.verdicts import Fate, Verdict

# Parts of a package with a row of their own: they explain decisions, or replay recorded ones.
_APART = ("extender/explain", "extender/replay", "extender/simulate")


def package(file: str) -> str:
    """Return the package under which a file is counted."""
    return next((part for part in _APART if file.startswith(f"{part}/")), file.partition("/")[0])


def table(verdicts: Iterable[Verdict]) -> str:
    """Return a table in Markdown: by package, the killed mutants of all that are not equivalent."""
    by_package: defaultdict[str, list[Fate]] = defaultdict(list)
    for verdict in verdicts:
        by_package[package(verdict.site.file)].append(verdict.fate)
    rows = [*sorted(by_package.items()), ("all", [fate for fates in by_package.values() for fate in fates])]
    head = ["| package | mutants | equivalent | found | survived | covered by no test | score |", "|---|" + "---:|" * 6]
    return "\n".join([*head, *(_row(name, fates) for name, fates in rows)])


def _row(name: str, fates: list[Fate]) -> str:
    counts = [fates.count(fate) for fate in (Fate.EQUIVALENT, Fate.KILLED, Fate.SURVIVED, Fate.UNCOVERED)]
    score = share(fates)
    cells = [name, len(fates), *counts, "" if score is None else f"{score:.0%}"]
    return f"| {' | '.join(map(str, cells))} |"


def share(fates: list[Fate]) -> float | None:
    """Return the killed share of the mutants that are not equivalent; None if there are none."""
    counted = len(fates) - fates.count(Fate.EQUIVALENT)
    return fates.count(Fate.KILLED) / counted if counted else None


def survivors(verdicts: Iterable[Verdict]) -> str:
    """Return each surviving mutant, with the fields that an entry in the list of equivalents needs."""
    missed = [verdict for verdict in verdicts if verdict.fate in (Fate.SURVIVED, Fate.UNCOVERED)]
    return "\n".join(map(_survivor, sorted(missed, key=lambda one: (one.site.file, one.site.line))))


def _survivor(verdict: Verdict) -> str:
    site = verdict.site
    tests = f"{verdict.covering} tests cover it" if verdict.covering else verdict.fate.value
    if verdict.left_out:
        tests += f", {verdict.left_out} of which were not run"
    return (
        f"{site.file}:{site.line} [{site.edit.operator}] {site.before} → {site.after} ({tests})\n"
        f"  - {site.text}\n  + {site.becomes}"
    )


def outdated(entries: Iterable[Equivalent]) -> str:
    """Return the listed equivalents that are no mutants any more."""
    return "\n".join(f"{one.file}: no line with a mutant {one.operator!r} says: {one.line}" for one in entries)

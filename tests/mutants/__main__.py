"""`python -m tests.mutants`: makes a sample of mutants, runs tests on each, and prints scores and survivors."""

import argparse
import json
import random
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from tests.mutants import clones, report
from tests.mutants.operators import WIDE
from tests.mutants.recording import Covered, Recording, covered
from tests.mutants.sampling import key_of, population, read_equivalents, sample, stale
from tests.mutants.sites import Site
from tests.mutants.source import Source
from tests.mutants.verdicts import Examiner, Fate, Verdict
from tests.mutants.workers import Worker, spread

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "mutants"
EQUIVALENT = Path(__file__).with_name("equivalent.toml")


def main() -> None:
    """Read the options, and measure."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--count", type=_positive, default=120, help="how many mutants")
    parser.add_argument("--seed", type=int, default=None, help="repeats a sample; a new one is drawn and printed")
    parser.add_argument("--workers", type=_positive, default=2, help="processes that run tests")
    parser.add_argument("--within", default="", help="only files whose path begins so, or so: a,b")
    parser.add_argument("--wide", action="store_true", help="also edits of whole expressions: conditions, operands, …")
    parser.add_argument("--record", action="store_true", help="record the coverage of all tests again")
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    _note(f"seed {seed}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    trees = [clones.clone(ROOT, FOLDER / f"clone-{number}") for number in range(1, options.workers + 1)]
    recording = _recorded(trees[0], options.workers, again=options.record)
    measure(trees, recording, count=options.count, seed=seed, within=options.within, wide=options.wide)


def _positive(text: str) -> int:
    """Return a number of at least 1; argparse reports the error with the option."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 1")
    return int(text)


def _recorded(clone: Path, workers: int, *, again: bool) -> Recording:
    """Return the coverage of all tests; run new and changed tests first."""
    if again:
        for file in FOLDER.glob("recording.json"), FOLDER.glob("coverage.sqlite*"):
            for each in file:
                each.unlink()
    recording = Recording.read(FOLDER)
    outdated = recording.outdated(clones.tests(clone))
    if outdated:
        _note(f"recording the coverage of {len(outdated)} files of tests")
        recording.update(clone, workers=workers)
    if recording.failed:
        _note("failed without any mutant, and left out: " + ", ".join(sorted(recording.failed)))
    return recording


def measure(trees: list[Path], recording: Recording, *, count: int, seed: int, within: str, wide: bool) -> None:
    """Run tests on a sample of mutants; print the survivors and the scores."""
    product = clones.product(trees[0])
    everything = population(product)
    listed = read_equivalents(EQUIVALENT.read_text(encoding="utf-8"))
    equivalent = {one.key for one in listed}
    below = tuple(within.split(","))
    eligible = (site for site in everything if site.file.startswith(below) and (wide or site.edit.operator not in WIDE))
    chosen = sample(eligible, product, count=count, seed=seed)
    if not chosen:
        sys.exit(f"no file of the product begins with {within}, which --within names")
    with ExitStack() as stack:
        workers = [stack.enter_context(Worker(tree)) for tree in trees]
        examiners = [Examiner(worker.run, recording.duration_s, set(recording.failed), product) for worker in workers]
        pieces = [
            (site, None if key_of(site) in equivalent else covered(site, recording, product))
            for site in sorted(chosen, key=lambda site: site.file)
        ]
        verdicts = []
        for verdict in spread(pieces, [_examination(examiner, product) for examiner in examiners]):
            verdicts.append(verdict)
            place = f"{verdict.site.file}:{verdict.site.line}"
            _note(f"{len(verdicts)}/{len(pieces)} {place} {verdict.fate.value} {verdict.by}")
    _keep(verdicts, seed)
    print(report.survivors(verdicts), report.table(verdicts), f"seed {seed}", sep="\n\n")
    old = report.outdated(stale(listed, everything))
    if old:
        print(f"\nNo mutants any more, in {EQUIVALENT.relative_to(ROOT)}:\n{old}")


def _examination(examiner: Examiner, product: dict[str, str]) -> Callable[[tuple[Site, Covered | None]], Verdict]:
    def examine(piece: tuple[Site, Covered | None]) -> Verdict:
        site, tests = piece
        if tests is None:
            return Verdict(site, Fate.EQUIVALENT)
        return examiner.examine(site, Source(product[site.file]).edited(site.edit), tests)

    return examine


def _keep(verdicts: list[Verdict], seed: int) -> None:
    """Write all verdicts to a file in the build folder: each mutant with the test that killed it."""
    rows = [
        {
            "file": each.site.file,
            "line": each.site.line,
            "operator": each.site.edit.operator,
            "text": each.site.text,
            "becomes": each.site.becomes,
            "fate": each.fate.value,
            "by": each.by,
            "covering": each.covering,
        }
        for each in verdicts
    ]
    (FOLDER / f"verdicts-{seed}.json").write_text(json.dumps(rows, indent=1))


def _note(text: str) -> None:
    """Report progress on stderr."""
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")


if __name__ == "__main__":
    main()

"""The check of a commit, before it lands and by hand: `.ci/run`, from a checkout with nothing but Python 3.11 (and Go).

On every commit: lint, generated files, the docs as a site, `make test`, `make test-slow`, real torchrun and mpirun, the
model's seeded defects; `make test` and the others run side by side. And one further step, chosen by the commit's hash:
the whole model, sixths of `make test-long`, the oldest Kubernetes, neighbours, real nodes, the chart on them, the page
in a browser, thirty mutants. As root on Debian it installs the packages that this step needs. The step is ended 70
minutes after the check began, and then fails nothing.

`.ci/run --turns all` runs all of these steps, `.ci/run --turns "e2e-real model"` the named ones, each to its end;
`.ci/run --checked` lists the last run of each step. The output of each step is in build/ci, and its end is shown.
"""

import argparse
import datetime as dt
import functools
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from check import flaky, results, steps
from check.running import Check


def main() -> str | int:
    """Run the check; return its exit code, or an error in the options."""
    os.chdir(Path(__file__).parents[1])
    every = [step.name for step in (steps.SETUP, steps.TEST, steps.TEST_SLOW, *steps.BESIDE)]
    asked = _arguments()
    turns = steps.turns(_output("make", "--silent", "oldest"))
    if asked.checked:
        print(results.checked(results.FILE, [*every, *turns]))
        return 0
    commit = _output("git", "rev-parse", "HEAD")
    try:
        names, others = steps.chosen(list(turns), commit, asked.turns)
        listed = flaky.read(flaky.FILE.read_text(encoding="utf-8"))
    except ValueError as error:
        return str(error)
    if old := flaky.overdue(listed, dt.datetime.now(tz=dt.UTC).date()):
        return "\n".join(old)
    check = Check(commit[:8] + ("+" if _output("git", "status", "--porcelain") else ""), listed)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: check.end())
    if check.run(steps.SETUP).outcome == "passed":
        foremost = functools.partial(_foremost, check, turns, names, others)
        check.side_by_side(foremost, lambda: check.run_all(_in_time(steps.BESIDE), behind=True))
    print(results.table(check.results))
    print(check.skipped())
    print(f"the check took {check.seconds:.0f} s")
    return int(any(each.fails(always=every) for each in check.results))


def _arguments() -> argparse.Namespace:
    """Return the options.

    Environment variables are not read, because a variable that is set for another program would change the check.
    """
    parser = argparse.ArgumentParser(prog=".ci/run", description="Check this commit.")
    parser.add_argument("--turns", default="", metavar="NAMES", help=f"{steps.ALL}, or names of turns in one argument")
    parser.add_argument("--checked", action="store_true", help="list only the last run of each step")
    return parser.parse_args()


def _foremost(check: Check, turns: dict[str, steps.Step], names: list[str], others: list[str]) -> None:
    """Run `make test` and `make test-slow`, then further steps.

    `--turns` names the further steps; by default, they are the commit's own step if time allows.
    """
    check.run_all(_in_time((steps.TEST, steps.TEST_SLOW)))
    if others and check.seconds > steps.LATEST_TURN_S:
        print(f"after {check.seconds:.0f} s no turn begins: `.ci/run --turns {names[0]}` runs the turn of this commit")
    elif others:
        check.one_of([replace(turns[name], until_s=steps.END_OF_TURN_S) for name in [*names, *others]])
    else:
        check.run_all([turns[name] for name in names])


def _in_time(always: Sequence[steps.Step]) -> list[steps.Step]:
    return [replace(step, until_s=steps.END_S) for step in always]


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())

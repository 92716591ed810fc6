"""Runs steps in concurrent lanes, and gives tests that may fail a second chance."""

import contextlib
import datetime as dt
import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from check import flaky, results, words
from check.flaky import Flaky
from check.results import Outcome, Result
from check.steps import Step

PYTEST = (".venv/bin/python", "-m", "pytest")
_TO_THE_END_S = 60.0
"""Grace period of a step whose time is over, in which pytest stops the planes that it has started."""
_INSTALLATIONS = 3
"""Maximum number of attempts of a step, each with the packages that the previous attempt lacked."""


MAX_SHOWN_LINES = 400
"""Maximum number of lines that are shown from the end of a step's output; the log file has all of them."""


def _show(text: str) -> None:
    """Print a text.

    If the reader of the output has gone, ignore the error, because the check must still return its exit code.
    """
    with contextlib.suppress(BrokenPipeError):
        print(text, flush=True)


class Check:
    """One run of steps, with its results and skipped tests.

    The output of a step is shown as a whole, even if other steps run at the same time. A step writes its output into
    `folder`, `<step>.log`; the last results of all runs are in `kept`.
    """

    def __init__(
        self,
        commit: str,
        listed: Sequence[Flaky],
        *,
        folder: Path = results.FILE.parent,
        kept: Path = results.FILE,
        pytest: Sequence[str] = PYTEST,
        show: Callable[[str], None] = _show,
        unlisted: int = flaky.UNLISTED,
    ) -> None:
        self.results: list[Result] = []
        self._commit = commit
        self._listed = listed
        self._folder = folder
        self._kept = kept
        self._pytest = pytest
        self._show = show
        self._unlisted = unlisted
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._running: dict[int, str] = {}
        """Pid → step."""
        self._ended = False
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def seconds(self) -> float:
        """The seconds since the start of the run."""
        return time.monotonic() - self._began

    def side_by_side(self, *lanes: Callable[[], object]) -> None:
        """Run these functions at the same time, and wait for all of them."""
        with ThreadPoolExecutor(len(lanes)) as pool:
            for lane in [pool.submit(lane) for lane in lanes]:
                lane.result()

    def one_of(self, steps: Sequence[Step]) -> None:
        """Run the first of the steps whose requirements this machine meets."""
        for step in steps:
            if self._ended or self.run(step).outcome != "not here":
                return

    def run_all(self, steps: Sequence[Step], *, behind: bool = False) -> None:
        """Run these steps, one after the other, even if some fail.

        With `behind`, they have a lower priority than other steps.
        """
        for step in steps:
            if not self._ended:
                self.run(replace(step, command=("nice", "-n", "5", *step.command)) if behind else step)

    def run(self, step: Step) -> Result:
        """Run a step, show the end of its output, and keep its result."""
        at, before = f"{dt.datetime.now(dt.UTC):%Y-%m-%dT%H:%M:%SZ}", self.seconds
        self._report(f"=== after {before:.0f} s: {step.name} begins")
        outcome, why = self._attempts(step)
        result = Result(step.name, outcome, self._commit, at, round(self.seconds - before, 1), why)
        line = f"=== after {self.seconds:.0f} s: {step.name} {outcome} in {result.seconds:.0f} s"
        with self._lock:
            self._show(f"{line}; output:\n{self._end_of_output(step.name)}\n{line}{f': {why}' if why else ''}")
            self.results.append(result)
            results.keep(self._kept, result)
        return result

    def skipped(self) -> str:
        """Return a line about the skipped tests: their number, steps and reasons."""
        reasons = []
        for each in self.results:
            reasons += [
                f"{count} of {each.step}: {why}" for why, count in words.skipped(self._output(each.step)).items()
            ]
        return f"skipped: {'; '.join(reasons)}" if reasons else "skipped: none"

    def end(self) -> None:
        """End the running steps, show their output so far, and start no more steps."""
        self._ended = True
        for pid in list(self._running):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGTERM)

    def _attempts(self, step: Step) -> tuple[Outcome, str]:
        """Run a step, and return its outcome with the reason.

        The step is repeated if packages were missing and can be installed, or if its tests have a second chance.
        """
        log, failures = self._folder / f"{step.name}.log", self._folder / f"{step.name}.cache"
        log.unlink(missing_ok=True)
        for _ in range(_INSTALLATIONS):
            shutil.rmtree(failures, ignore_errors=True)
            before = len(self._output(step.name))
            code = self._call(step, step.command, log, failures)
            if code == 0:
                return "passed", ""
            if self.seconds >= step.until_s:
                return "out of time", f"it was ended {step.until_s:.0f} s after the check began"
            failed = _failed(failures)
            lacks = "" if failed else words.lacking(self._output(step.name)[before:])
            if not lacks or not self._install(step, words.packages(lacks), log):
                break
        if lacks:
            return "not here", lacks
        if self._ended or code < 0:
            return "failed", "it was ended" if self._ended else f"it was ended by signal {-code}"
        if step.again is None or not failed:
            return "failed", f"exit code {code}"
        return self._second_chance(step, failed, log, failures)

    def _second_chance(self, step: Step, failed: Sequence[str], log: Path, failures: Path) -> tuple[Outcome, str]:
        """Run the files of the failed tests once more, unless too many of these tests are not listed."""
        others = flaky.unlisted(self._listed, failed)
        if len(others) > self._unlisted:
            return "failed", f"{', '.join(others)} failed, and {flaky.FILE} does not list it"
        command = (*self._pytest, *(step.again or ()), *flaky.files(failed))
        if self._call(step, command, log, failures):
            if self.seconds >= step.until_s:
                return "out of time", f"{', '.join(failed)} failed, and there was no time for its second chance"
            return "failed", f"{', '.join(failed)} failed, and its second chance, too"
        advice = "mend it, or list it" if others else "renew its date"
        return "passed again", f"{', '.join(failed)} failed at first: {advice} in {flaky.FILE}"

    def _install(self, step: Step, packages: Sequence[str], log: Path) -> bool:
        """Install Debian's packages, if this is allowed here; return False if they are not available."""
        if not packages or os.geteuid() or shutil.which("apt-get") is None:
            return False
        quiet = ("--quiet=2", "-o", "DPkg::Lock::Timeout=300")
        install = ("apt-get", *quiet, "install", "--yes", "--no-install-recommends", *packages)
        quietly = replace(step, variables={"DEBIAN_FRONTEND": "noninteractive"})
        if self._call(quietly, install, log) == 0:
            return True
        return self._call(quietly, ("apt-get", *quiet, "update"), log) == 0 and self._call(quietly, install, log) == 0

    def _call(self, step: Step, command: Sequence[str], log: Path, failures: Path | None = None) -> int:
        """Run a command of the step, and append its output to the log. pytest records the failed tests in its cache."""
        variables = {**os.environ, **step.variables}
        if failures is not None and step.again is not None:
            variables["PYTEST_ADDOPTS"] = f"-o cache_dir={failures.absolute()}"
        with log.open("ab") as file:
            file.write(f"$ {' '.join(command)}\n".encode())
            file.flush()
            # A group of its own, to be ended as one, in our session: Linux may share the CPU out by session, and then
            # priorities count within one only.
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, env=variables, process_group=0
            )
            self._running[process.pid] = step.name
            if self._ended:  # `end` may have run before this process was listed
                os.killpg(process.pid, signal.SIGTERM)
            try:
                return self._wait(process, step)
            finally:
                del self._running[process.pid]

    def _wait(self, process: subprocess.Popen[bytes], step: Step) -> int:
        """Wait for a command until the time of its step is over; return its exit code."""
        left = step.until_s - self.seconds
        for patience_s, number in ((left, signal.SIGINT), (_TO_THE_END_S, signal.SIGKILL)):
            try:
                return process.wait(patience_s if patience_s < threading.TIMEOUT_MAX else None)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, number)
        return process.wait()

    def _output(self, name: str) -> str:
        log = self._folder / f"{name}.log"
        return log.read_text(errors="replace").rstrip() if log.exists() else ""

    def _end_of_output(self, name: str) -> str:
        lines = self._output(name).splitlines()
        before = len(lines) - MAX_SHOWN_LINES
        more = [f"… {before} lines before these are in {self._folder / name}.log"] if before > 0 else []
        return "\n".join([*more, *lines[-MAX_SHOWN_LINES:]])

    def _report(self, text: str) -> None:
        with self._lock:
            self._show(text)


def _failed(failures: Path) -> list[str]:
    """Return the names of the failed tests, from pytest's cache."""
    file = failures / "v" / "cache" / "lastfailed"
    return sorted(json.loads(file.read_text())) if file.exists() else []

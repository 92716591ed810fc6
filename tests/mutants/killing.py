"""Tests run on mutants, each in a process that is forked from one in which the imports are done.

The tests of a line within functions run in a copy of a process that has collected the whole tier: there, functions get
the code of the mutant. The tests of a line that imports run need a new start: a copy of a process that has foreign
libraries only.
"""

import contextlib
import gc
import importlib
import os
import resource
import selectors
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from io import BufferedRWPair
from itertools import zip_longest
from pathlib import Path
from types import FunctionType

import msgspec
import pytest
from hypothesis import Phase, settings

from tests.mutants import clones, swap

# Foreign libraries that most tests import: they take a second of each new process.
_FOREIGN = ("aiohttp", "flask", "jsonpatch", "kubernetes.client", "numpy", "sqlalchemy", "starlette.applications")
_MEMORY_BYTES = 4 * 2**30
# Reported in place of a test if a module or a file of tests cannot be imported.
IMPORT = "import"
# Reported in place of a test if loaded functions cannot get the mutant's code: the job needs a new process.
SWAP = "swap"
_READY = b"ready\n"
# Plain assertions: pytest's explanation of a large difference takes longer than the test.
_OPTIONS = ("-q", "-p", "no:cacheprovider", "--continue-on-collection-errors", "--assert=plain", "--tb=native")


class Job(msgspec.Struct, frozen=True):
    """Tests to run in order until one fails, on the product or on a mutant of it: a file with another text.

    A job hangs that takes more than `cpu_s` of CPU, or in which no test begins or ends for `wait_s`.
    """

    tests: list[str]
    cpu_s: int
    wait_s: int
    file: str = ""
    before: str = ""
    after: str = ""
    is_fresh: bool = False


class Outcome(msgspec.Struct, frozen=True):
    """The result of a job: the test that `failed`, and `end`: "hangs" or "crashes" if the process did so."""

    failed: str = ""
    end: str = ""
    ran: int = 0
    seconds: float = 0.0


class _Report:
    """The pipe from the process of a job to the process that waits for it; a line for each event."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe

    def begin(self, test: str) -> None:
        os.write(self._pipe, f"run {test}\n".encode())

    def fail(self, test: str) -> None:
        os.write(self._pipe, f"fail {test}\n".encode())
        os._exit(1)


class Chosen:
    """A pytest plugin that runs given tests in order, and ends the process with the first failure."""

    def __init__(self, tests: list[str], report: _Report) -> None:
        self._order = {test: at for at, test in enumerate(tests)}
        self._report = report
        self.is_ready = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Switch off the shrinking of failing examples, which takes minutes."""
        _quicken()

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out other tests."""
        items[:] = sorted((one for one in items if one.nodeid in self._order), key=lambda one: self._order[one.nodeid])

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the tests."""
        self.is_ready = not session.testsfailed
        if self.is_ready:
            self.run(session.items)
        return True

    def run(self, items: list[pytest.Item]) -> None:
        """Run the items, as pytest would."""
        following: pytest.Item | None
        for item, following in zip_longest(items, items[1:]):
            self._report.begin(item.nodeid)
            item.ihook.pytest_runtest_protocol(item=item, nextitem=following)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """End with a test that fails."""
        if report.failed:
            self._report.fail(report.nodeid)


class _Tier:
    """A pytest plugin that collects all tests once, and runs the tests of each job in a fork of its process."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Switch off the shrinking of failing examples, which takes minutes."""
        _quicken()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Answer jobs instead of running all tests."""
        items = {item.nodeid: item for item in session.items}
        loaded = swap.functions()
        gc.freeze()
        with self._channel.makefile("rwb") as channel:
            channel.write(_READY)
            channel.flush()
            for line in channel:
                job = msgspec.json.decode(line, type=Job)
                outcome = _forked(job, partial(self._run, job, items, loaded, session.config))
                channel.write(msgspec.json.encode(outcome) + b"\n")
                channel.flush()
        return True

    @staticmethod
    def _run(
        job: Job,
        items: dict[str, pytest.Item],
        loaded: dict[str, list[FunctionType]],
        config: pytest.Config,
        report: _Report,
    ) -> None:
        if job.file:
            path = str(Path.cwd() / job.file)
            changed = swap.compared(job.before, job.after, path)
            if not changed.is_complete or not swap.apply(changed, loaded.get(path, [])):
                report.fail(SWAP)
        chosen = Chosen(job.tests, report)
        config.pluginmanager.register(chosen)
        chosen.run([items[test] for test in job.tests if test in items])


def _quicken() -> None:
    settings.register_profile("mutants", settings.get_profile("muster"), phases=(Phase.explicit, Phase.generate))
    settings.load_profile("mutants")


def _fresh(job: Job) -> Outcome:
    """Run a job whose line is run by imports."""

    def start(report: _Report) -> None:
        files = sorted({test.partition("::")[0] for test in job.tests})
        chosen = Chosen(job.tests, report)
        pytest.main([*_OPTIONS, f"--basetemp={os.environ['MUTANTS_TMP']}/fresh", *files], plugins=[chosen])
        if not chosen.is_ready:
            report.fail(IMPORT)

    return _forked(job, start)


def _forked(job: Job, run: Callable[[_Report], None]) -> Outcome:
    """Run a job in a copy of this process, which ends by itself, or is killed when it hangs."""
    begun = time.monotonic()
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (job.cpu_s, job.cpu_s))
        resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY_BYTES, _MEMORY_BYTES))
        try:
            run(_Report(writing))
        except BaseException:  # noqa: BLE001 - the process ends here, and with it what it was copied from
            traceback.print_exc()
            os._exit(2)
        os._exit(0)
    os.close(writing)
    lines = list(_lines(reading, job.wait_s))
    os.close(reading)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    return outcome(lines, os.waitstatus_to_exitcode(status), time.monotonic() - begun)


def _lines(pipe: int, wait_s: int) -> Iterator[str]:
    """Yield the lines that the process of a job reports, until it ends or is silent for `wait_s`.

    Seconds are waited for one by one, so that a time in which all processes are stopped does not count.
    """
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while any(selector.select(1) for _ in range(wait_s)):
            chunk = os.read(pipe, 65536)
            if not chunk:
                return
            *lines, rest = (rest + chunk).split(b"\n")
            yield from (line.decode() for line in lines)


def outcome(lines: list[str], code: int, seconds: float) -> Outcome:
    """Return the result of a job from its report lines and its exit code: 0 if all tests passed, 1 if one failed."""
    tests = [line.partition(" ")[2] for line in lines]
    last = tests[-1] if tests else ""
    if lines and lines[-1].startswith("fail "):
        return Outcome(last, "", len(tests) - 1, seconds)
    if code in (-signal.SIGKILL, -signal.SIGXCPU):
        return Outcome(last, "hangs", len(tests), seconds)
    return Outcome(last if code else "", "crashes" if code else "", len(tests), seconds)


def main() -> None:
    """Read jobs on stdin and write their outcomes to stdout; the output of tests goes to stderr."""
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    for name in _FOREIGN:
        importlib.import_module(name)
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        ours.close()
        os._exit(
            pytest.main(
                [*_OPTIONS, f"--basetemp={os.environ['MUTANTS_TMP']}/tier", clones.TIER], plugins=[_Tier(theirs)]
            )
        )
    theirs.close()
    with ours.makefile("rwb") as tier:
        if tier.readline() != _READY:  # only then are the files read that jobs change
            sys.exit("the tests could not be collected")
        for line in sys.stdin.buffer:
            answers.write(_answered(msgspec.json.decode(line, type=Job), line, tier) + b"\n")


def _answered(job: Job, line: bytes, tier: BufferedRWPair) -> bytes:
    """Return the outcome of a job, for whose time its file has the text of the mutant."""
    with clones.written(Path(job.file), job.after) if job.file else contextlib.nullcontext():
        if job.is_fresh:
            return msgspec.json.encode(_fresh(job))
        tier.write(line)
        tier.flush()
        return tier.readline().strip()


if __name__ == "__main__":
    main()

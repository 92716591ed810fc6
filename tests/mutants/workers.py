"""Processes that run jobs, each in a clone of the tree."""

import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Self, TypeVar

import msgspec

from tests.mutants import clones
from tests.mutants.killing import Job, Outcome

_T = TypeVar("_T")
_R = TypeVar("_R")


class Worker:
    """A process that runs jobs in a clone; its output is in a log beside the clone."""

    def __init__(self, clone: Path) -> None:
        log = clone.with_suffix(".log")
        environment = clones.environment(clone) | {
            "PYTHONDONTWRITEBYTECODE": "1",
            "MUTANTS_TMP": str(clone.with_suffix(".tmp")),
        }
        clone.with_suffix(".tmp").mkdir(exist_ok=True)
        with log.open("w") as stderr:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.mutants.killing"],
                cwd=clone,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=environment,
            )
        self._log = log

    def run(self, job: Job) -> Outcome:
        """Return the outcome of a job."""
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("a worker without pipes")
        self._process.stdin.write(msgspec.json.encode(job) + b"\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"a worker ended: see {self._log}")
        return msgspec.json.decode(answer, type=Outcome)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End the process, and with it the one that has collected the tests."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()


def spread(work: Iterable[_T], runs: list[Callable[[_T], _R]]) -> Iterator[_R]:
    """Yield the result of each piece of work, in order; the next free runner does each piece."""
    free: SimpleQueue[Any] = SimpleQueue()
    for run in runs:
        free.put(run)

    def do(piece: _T) -> _R:
        run: Callable[[_T], _R] = free.get()
        try:
            return run(piece)
        finally:
            free.put(run)

    with ThreadPoolExecutor(len(runs)) as pool:
        yield from pool.map(do, work)

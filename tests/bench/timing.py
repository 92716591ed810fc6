"""How a thing is measured: medians of CPU time over several runs."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the table; times in milliseconds, budget None where the design names none."""

    what: str
    median_ms: float
    budget_ms: float | None = None

    def __str__(self) -> str:
        budget = f"{self.budget_ms:7.2f} ms" if self.budget_ms is not None else "-"
        ratio = f"{self.median_ms / self.budget_ms:6.2f}" if self.budget_ms else ""
        return f"{self.what:58} {self.median_ms:7.3f} ms {budget:>10} {ratio:>6}"


def cpu_ms(fn: Callable[[], object], *, runs: int = 15, calls: int = 1) -> float:
    """Median CPU milliseconds of one call of this thread, after one call that is not counted."""
    fn()
    samples = []
    for _ in range(runs):
        started = time.thread_time()
        for _ in range(calls):
            fn()
        samples.append((time.thread_time() - started) / calls * 1000)
    return statistics.median(samples)

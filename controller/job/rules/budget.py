"""Restart budgets: how often a gang is restarted in a sliding time, for faults that are not the infrastructure's. Pure.

The restarts that count are noted in the Job's status with their times, so that another process goes on with the count.
The one that is over the budget ends the Job: it enters Restarting as every restart does, and fails from there.
"""

from collections import Counter

import msgspec
from msgspec import structs

from controller.job.rules import notes
from controller.job.rules.events import Request
from controller.job.rules.faults import Fault
from muster.api.volcano.batch import Job, JobStatus
from muster.resources.runtime import Budget, restart_budget
from muster.volcano.tasks import max_retry

_WORDS_CHARS = 64


class Restarts(msgspec.Struct, omit_defaults=True):
    """The note."""

    past: list[tuple[float, str]] = []
    """Restarts that count: time in seconds since the epoch, and cause; never more than the budget."""
    spent: str = ""
    """Why the Job fails; empty while it continues."""


def budget_of(job: Job) -> Budget | None:
    """Return the budget of a Job; None without one that can be read."""
    return restart_budget(job.metadata.annotations)


def charged(job: Job, status: JobStatus, request: Request, fault: Fault, now_s: float) -> JobStatus:
    """Return the status of a Job that is about to be restarted: the restart is counted, or the budget is spent.

    A restart that the infrastructure has caused uses up neither the budget nor one of maxRetry. What a user asks for by
    a Command does not count either, and lets a Job go on whose budget was spent.
    """
    budget = budget_of(job)
    if budget is None:
        return structs.replace(status, retry_count=status.retry_count + 1)
    known = restarts_of(status)
    if request.command:
        return _noted(structs.replace(status, retry_count=status.retry_count + 1), Restarts(known.past))
    if fault == "infrastructure":
        return status
    past = [(at, why) for at, why in known.past if at > now_s - budget.within_s]
    why = _cause(request)
    if len(past) >= budget.restarts:
        return _noted(status, Restarts(past, _words(budget, [*past, (now_s, why)])))
    counted = Restarts([*past, (round(now_s, 3), why)])
    return _noted(structs.replace(status, retry_count=status.retry_count + 1), counted)


def restarts_of(status: JobStatus) -> Restarts:
    """Return the restarts that the status notes; none if the note cannot be read (it was edited)."""
    try:
        return msgspec.json.decode(notes.note(status, notes.RESTARTS) or "{}", type=Restarts)
    except msgspec.DecodeError:
        return Restarts()


def spent(status: JobStatus) -> str:
    """Return why a Job has no restart left by its budget; empty if it has, or has none."""
    return restarts_of(status).spent if notes.note(status, notes.RESTARTS) else ""


def no_restart_left(job: Job) -> bool:
    """Return True if the restart that is under way is the end of the Job."""
    return job.status.retry_count >= max_retry(job.spec) or bool(spent(job.status))


def _noted(status: JobStatus, restarts: Restarts) -> JobStatus:
    known = restarts.past or restarts.spent
    return notes.noted(status, notes.RESTARTS, msgspec.json.encode(restarts).decode() if known else "")


def _cause(request: Request) -> str:
    codes = ", ".join(map(str, request.exit_codes))
    words = f"exit code {codes}" if codes else request.event
    return (f"{words} ({request.reason})" if request.reason else words)[:_WORDS_CHARS]


def _words(budget: Budget, past: list[tuple[float, str]]) -> str:
    causes = Counter(why for _, why in past)
    told = ", ".join(f"{why} ({times} times)" if times > 1 else why for why, times in causes.items())
    return f"the restart budget is spent, {budget}, and it failed once more: {told}"

"""Queues as text: usage of their shares as bars, and one queue in full."""

from collections.abc import Iterator, Sequence

from extender.explain.queues import QueueReport
from muster.resources.vector import PODS, Vector, amount_words

BAR = 20
"""Characters of a whole bar."""


def top_lines(reports: Sequence[QueueReport], resource: str) -> Iterator[str]:
    """Yield a line per queue: usage and share of one resource, by default its main one, and its waiting gangs."""
    width = max([len("QUEUE"), *(2 * report.depth + len(report.queue) for report in reports)])
    yield f"{'QUEUE':<{width}}  {'RESOURCE':<16} {'USED':>9} {'FAIR':>9} {'DESERVED':>9}  {'SHARE':<{BAR + 6}} WAITING"
    for report in reports:
        name = resource or _main(report)
        used, fair, deserved = (
            amount_words(name, amounts.get(name, 0))
            for amounts in (report.allocated, report.fair_share, report.deserved)
        )
        title = "  " * report.depth + report.queue
        yield (
            f"{title:<{width}}  {name:<16} {used:>9} {fair:>9} {deserved:>9}  "
            f"{bar(report.share(name)):<{BAR + 6}} {report.waiting}"
        )


def _main(report: QueueReport) -> str:
    """Return the main resource of the queue: the one that it has most of, preferably one that it deserves."""
    most = report.share(report.dominant)
    alike = [name for name in report.deserved if report.allocated.get(name, 0) and report.share(name) >= most]
    return min(alike, default=report.dominant)


def bar(share: float) -> str:
    """Return a share as a bar with its percentage."""
    filled = min(BAR, round(share * BAR))
    return f"{'#' * filled}{'.' * (BAR - filled)} {share:4.0%}"


def queue_lines(report: QueueReport) -> Iterator[str]:
    """Yield the lines of one queue: its amounts, and its waiting gangs with their reasons."""
    yield f"Queue {report.queue}" + (f", below {report.parent}" if report.parent else "")
    yield f"  weight {report.weight}, priority {report.priority}"
    yield f"  {'':<24} {'used':>10} {'fair share':>10} {'deserved':>10} {'guarantee':>10} {'capability':>10}"
    columns = (report.allocated, report.fair_share, report.deserved, report.guarantee, report.capability)
    for name in sorted({name for amounts in columns for name in amounts} - {PODS}):
        cells = " ".join(f"{_cell(name, amounts):>10}" for amounts in columns)
        yield f"  {name:<24} {cells}  {bar(report.share(name))}"
    yield f"  {report.waiting} {'gang waits' if report.waiting == 1 else 'gangs wait'} in it"
    for gang in report.first:
        yield f"    {gang.gang}: {gang.message} ({gang.reason})"


def changed_shares(before: Sequence[QueueReport], after: Sequence[QueueReport]) -> Iterator[str]:
    """Yield a line for each resource of a queue whose fair share changes."""
    known = {report.queue: report.fair_share for report in before}
    for report in after:
        was = known.get(report.queue, {})
        for name in sorted({*was, *report.fair_share} - {PODS}):
            old, new = was.get(name, 0), report.fair_share.get(name, 0)
            if old != new:
                words = f"{amount_words(name, old)} -> {amount_words(name, new)} {name}"
                yield f"queue {report.queue}: fair share {words}"


def _cell(resource: str, amounts: Vector) -> str:
    return amount_words(resource, amounts[resource]) if resource in amounts else "-"

"""Conversion of the reports of `muster replay` and `muster record --status` into lines of text."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from extender.explain.text import TextLine, Tone
from extender.record.reading import RecordingStatus
from extender.replay.check import CheckReport
from extender.replay.figures import QueueFigures
from extender.replay.report import ReplayReport, Waited
from gangs.words import duration
from muster.api.grammar import many
from musterctl.output.table import drawn

_DIFFERENCES = 10
"""Maximum number of differences that a text report shows."""
_WORDS = 4
"""Maximum number of decisions shown for each side of a difference."""


def check_lines(report: CheckReport) -> Iterator[TextLine]:
    """Yield the lines of a report that compares replayed decisions with recorded decisions."""
    total = sum(report.decisions.values())
    versions = ", ".join(report.versions) or "unknown"
    yield _line("title", f"Recorded from {report.since} to {report.until} by Muster {versions}")
    yield _line("plain", many(report.cycles, "cycle"), "cycles")
    counts = ", ".join(f"{count} {verb}" for verb, count in sorted(report.decisions.items()))
    yield _line("plain", f"{total}{f': {counts}' if counts else ''}", "decisions")
    tone: Tone = "good" if not report.different_cycles else "bad"
    yield _line(tone, f"{report.equal} of {total} are the same in the replay")
    if report.different_cycles:
        yield _line("bad", f"{report.different_cycles} cycles differ: {report.gone} gone, {report.new} new")
    if report.lost:
        yield _line("bad", f"{report.lost} changes are missing in the recording, so later cycles may differ")
    if not report.cycles:
        yield _line("hint", "no decisions were recorded: was it recorded by the extender, or by `muster record`?")
    for each in report.differences[:_DIFFERENCES]:
        yield _line("title", f"{each.at}, cycle {each.cycle}")
        yield from _decisions(each.then, "then")
        yield from _decisions(each.now, "now")
    if report.different_cycles > _DIFFERENCES:
        yield _line("hint", f"{report.different_cycles - _DIFFERENCES} more cycles differ; -o json lists more of them")


def _decisions(words: Sequence[Sequence[str]], label: str) -> Iterator[TextLine]:
    for each in words[:_WORDS]:
        yield _line("plain", " ".join(each), label)
    if len(words) > _WORDS:
        yield _line("plain", f"and {len(words) - _WORDS} more", label)


def replay_lines(report: ReplayReport) -> Iterator[TextLine]:
    """Yield the lines of a what-if report: a table with the total and each queue, then the gangs that differ most."""
    yield _line("title", f"Replayed from {report.since} to {report.until}")
    yield from (_line("plain", row) for row in _table(report))
    yield from _waited(report.longer, "wait longer")
    yield from _waited(report.shorter, "wait shorter")
    if not report.longer and not report.shorter:
        yield _line("good", "no gang waits longer or shorter")
    yield _line(
        "hint",
        f"the waits in a replay without the change differ from the recorded waits by {duration(report.apart_s)} "
        f"(median)",
    )
    if report.censored:
        yield _line("hint", f"{many(report.censored, 'gang')} still running at the end, with and without the change")
    if report.never_ran:
        yield _line(
            "hint", f"{many(report.never_ran, 'gang')} did not start in the recording: their run times are estimates"
        )
    if report.lost:
        yield _line("bad", f"{report.lost} changes are missing in the recording")


def _table(report: ReplayReport) -> Iterator[str]:
    resources = sorted({name for each in report.replayed for name in each.utilisation})
    heads = [
        "QUEUE",
        "",
        "CAME",
        "STARTED",
        "WAITING",
        "WAIT 50 %",
        "WAIT 95 %",
        "EVICTIONS",
        *(_short(each) for each in resources),
    ]
    rows = [heads]
    known = [{each.queue: each for each in side} for side in (report.recorded, report.replayed, report.changed)]
    for queue in sorted({name for side in known for name in side}):
        for side, label in zip(known, ("recorded", "replayed", "changed"), strict=True):
            rows.append(_row(side.get(queue), queue or "all", label, resources))
    yield from drawn(rows, right=range(2, len(heads)))


def _row(figures: QueueFigures | None, queue: str, label: str, resources: Sequence[str]) -> list[str]:
    if figures is None:
        return [queue, label, *["-"] * (6 + len(resources))]
    waits = (figures.wait_median_s, figures.wait_p95_s)
    shares = (f"{figures.utilisation[name]:.1%}" if name in figures.utilisation else "-" for name in resources)
    counts = (figures.came, figures.starts, figures.waiting)
    return [
        queue,
        label,
        *map(str, counts),
        *("-" if wait is None else duration(wait) for wait in waits),
        str(figures.evictions),
        *shares,
    ]


def _waited(gangs: Sequence[Waited], what: str) -> Iterator[TextLine]:
    if gangs:
        yield _line("title", f"Gangs that {what} with the change")
    for each in gangs:
        after = duration(each.after_s) + ("" if each.started else ", and on")
        yield _line("plain", f"{each.workload} (queue {each.queue}): {duration(each.before_s)} -> {after}")


def cut_lines(cuts: Mapping[Path, str]) -> Iterator[TextLine]:
    """Yield a line about each truncated file of a recording."""
    for path, why in sorted(cuts.items()):
        yield _line("hint", f"{path.name}: {why}")


def _short(resource: str) -> str:
    return resource.rpartition("/")[2].upper()


def _line(tone: Tone, text: str, label: str = "") -> TextLine:
    return TextLine(label, text, tone)


def status_lines(status: RecordingStatus) -> Iterator[TextLine]:
    """Yield the lines about the content of a recording."""
    versions = ", ".join(status.versions)
    yield _line("title", f"Recorded from {status.since} to {status.until} by Muster {versions}")
    started = many(status.sessions, "start")
    yield _line("plain", f"{many(status.files, 'file')}, {status.bytes} bytes, {started} of the process", "files")
    if status.pool:
        yield _line("plain", status.pool, "node pool")
    kinds = ", ".join(f"{number} {kind}" for kind, number in status.objects.items())
    yield _line("plain", kinds or "none", "objects")
    yield _line("plain", f"{status.changes} of objects", "changes")
    yield _line("plain", f"{status.cycles} with {many(status.decisions, 'decision')}", "cycles")
    for gap in status.gaps:
        yield _line("bad", f"{gap.since} to {gap.until}: {gap.why}", "missing")
    for name, why in status.cuts.items():
        yield _line("hint", f"{name}: {why}")

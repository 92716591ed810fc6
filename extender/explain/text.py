"""Reports as lines of text, each with a tone for its colour."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from extender.explain.members import runs_text
from extender.explain.report import GangQueueReport, GangReport, PlacementReport, PodReport, PodSetReport
from extender.planner.reasons.queues import RESERVED
from extender.planner.reasons.shortages import Cause, Shortage
from muster.api.grammar import have, many, some
from muster.api.kubernetes.meta import parse_time
from muster.api.muster.gang import DEFAULT_POD_SET
from muster.api.muster.placement import AvoidedNode
from muster.api.muster.reason import stored

Tone = Literal["title", "good", "bad", "plain", "hint"]
GOOD = frozenset({"finished", "running", "bound", "starting", "about-to-start"})

DAY_S = 86400


@dataclass(frozen=True, slots=True)
class TextLine:
    """One line of a report: a label, which may be empty, and a text."""

    label: str
    text: str
    tone: Tone = "plain"


def lines_of(report: GangReport | PodReport, now: float) -> list[TextLine]:
    """Return the lines of a report; ages are relative to `now`, in seconds since the epoch."""
    return list(_pod(report, now) if isinstance(report, PodReport) else _gang(report, now))


def _pod(report: PodReport, now: float) -> Iterator[TextLine]:
    yield TextLine("", f"pod {report.pod}", "title")
    yield TextLine("", report.summary, "good" if report.cause in GOOD else "bad")
    yield TextLine("scheduler", report.scheduler)
    if report.since:
        yield TextLine("since", f"{report.since}{_age(report.since, now)}")
    if report.slot:
        yield TextLine("slot", report.slot)
    if report.node:
        yield TextLine("node", report.node)
    elif report.pin:
        yield TextLine("pinned to", f"{report.pin} (placement {report.epoch})")
    if report.gates:
        yield TextLine("gates", ", ".join(report.gates))
    if report.scheduler_says:
        yield TextLine("kube-scheduler", report.scheduler_says)
    if report.shortage:
        yield from _nodes(report.shortage)
    for relief in report.relief:
        yield TextLine("would help", relief.sentence, "hint")
    if report.gang:
        yield TextLine("", "")
        yield from _gang(report.gang, now)


def _gang(report: GangReport, now: float) -> Iterator[TextLine]:
    yield TextLine("", report.workload or f"gang {report.gang}", "title")
    yield TextLine("", report.summary, "good" if report.cause in GOOD else "bad")
    if report.gang and report.workload:
        yield TextLine("gang", report.gang)
    phases = [f"PodGroup {report.phase}"] if report.phase else []
    phases += [f"Job {report.job_phase}"] if report.job_phase else []
    since = f", since {report.since}{_age(report.since, now)}" if report.since else ""
    yield TextLine("phase", (", ".join(phases) or "none") + since)
    yield TextLine("queue", _queue(report.queue))
    for pod_set in report.pod_sets:
        yield TextLine("needs", _needs(pod_set, report.min_member))
        yield TextLine("has", _has(pod_set))
    over = report.placement is not None and report.placement.phase == "Bound" and not report.members
    if report.placement and not over:
        yield TextLine("placement", _placement(report.placement))
    elif report.whole or over:
        yield TextLine("placement", "none now" if over else "none")
    elif report.expected_start:
        yield TextLine("expected", f"to start at {report.expected_start}")
    reserved = not report.nodes and report.placement is not None and report.placement.phase == "Reserved"
    for nodes in report.nodes or ([] if over else _planned(report.placement)):
        yield TextLine("reserved for it" if reserved else "on", nodes)
    for detail in report.details:
        yield TextLine("members", detail)
    if report.shortage:
        yield from _nodes(report.shortage)
    yield from map(_avoided, report.avoided)
    for relief in report.relief:
        yield TextLine("would help", relief.sentence, "hint")


def _avoided(each: AvoidedNode) -> TextLine:
    until = f" until {each.until}" if each.until else ""
    if each.failures:
        return TextLine("avoided", f"{each.node} is avoided{until}: {each.cause}")
    return TextLine("refused", f"{each.node} rejected a member and is avoided{until}")


def _queue(queue: GangQueueReport) -> str:
    text = f"{queue.name} ({queue.state})" if queue.state else queue.name
    if not queue.place:
        return text
    text += f", place {queue.place_words}" + (f" of {queue.waiting}" if queue.waiting else "") + " in it"
    text += f", {queue.overall_place} of {queue.overall_waiting} overall" if queue.overall_place else ""
    return text + (f"; after {', '.join(queue.ahead)}" if queue.ahead else "")


def _needs(pod_set: PodSetReport, min_member: int) -> str:
    minimum = f"{pod_set.minimum} of them start together" if pod_set.minimum else f"{min_member} start together"
    if pod_set.minimum == 1 == min_member:
        minimum = "1 is enough to start"
    return f"{pod_set.name}: {many(pod_set.replicas, 'pod')}, {minimum}; each {pod_set.each or 'of unknown size'}"


def _has(pod_set: PodSetReport) -> str:
    counts = (
        (pod_set.bound, "bound"),
        (pod_set.done, "done"),
        (pod_set.held, "placed, but no pod has arrived yet"),
        (pod_set.gated, "behind the gate"),
        (pod_set.pinned, "pinned, not bound"),
        (pod_set.ungated, "waiting without the gate"),
        (pod_set.failed, "failed"),
        (pod_set.leaving, "being deleted"),
        (pod_set.missing, "not created"),
    )
    return f"{pod_set.name}: " + (", ".join(f"{count} {words}" for count, words in counts if count) or "nothing")


def _placement(placement: PlacementReport) -> str:
    if placement.phase == "Reserved":
        when = _about(placement.expected_at, placement.left_s) if placement.left_s > 0 else "any moment"
        why = stored(placement.why, placement.message)  # the report was decoded from a server's JSON
        soon = why.given(when=when) if why.code == RESERVED and placement.expected_at else why
        return f"none yet; {soon}"
    text = f"epoch {placement.epoch}, {placement.phase}"
    if placement.phase in {"Planned", "Binding"}:
        late = f"{_span(-placement.left_s)} ago" if placement.left_s < 0 else f"in {_span(placement.left_s)}"
        text += f", deadline {placement.deadline} ({late})"
    return text + (f": {placement.message}" if placement.message else "")


def _planned(placement: PlacementReport | None) -> list[str]:
    if placement is None or placement.phase == "Abandoned":
        return []
    return [f"{name}: {runs_text(runs)}" for name, runs in placement.pod_sets.items()]


def _nodes(lacks: Shortage) -> Iterator[TextLine]:
    one = "one pod" if lacks.pod_set == DEFAULT_POD_SET else f"one pod of {lacks.pod_set}"
    empty = f" when {'it is' if lacks.nodes == 1 else 'they are'} empty" if lacks.kind == "ever" else ""
    yield TextLine("nodes", f"{lacks.roomy} of {many(lacks.nodes, 'node')} {have(lacks.roomy)} room for {one}{empty}")
    for cause in lacks.causes:
        yield TextLine("", _cause(cause))
    if lacks.nearest:
        yield TextLine("nearest miss", lacks.nearest)


def _cause(cause: Cause) -> str:
    roomy = f"; {cause.roomy} of them with free capacity" if cause.roomy else ""
    return f"{cause.counted} ({some(cause.examples, cause.nodes)}{roomy})"


def _age(moment: str, now: float) -> str:
    return f" ({_span(now - (parse_time(moment) or now))} ago)"


def _about(moment: str, left_s: float) -> str:
    """Return a future time as text, such as `about 03:34 UTC (in 30 min)`; from a day ahead, only `in 30 h`."""
    return f"about {moment[11:16]} UTC (in {_span(left_s)})" if left_s < DAY_S else f"in {_span(left_s)}"


def _span(seconds: float) -> str:
    for unit, size in (("d", DAY_S), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{int(seconds // size)} {unit}"
    return f"{max(0, round(seconds))} s"

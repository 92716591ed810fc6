"""Output of the planner's reports (explanations, simulations, queues, domains): as text, or as JSON or YAML."""

from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap
from typing import Any

import click
import msgspec
import yaml
from rich.text import Text

from extender.explain.own import GangPlaces, QueueDemand
from extender.explain.queues import OwnQueue, QueueReport
from extender.explain.text import TextLine
from extender.explain.topology import DomainReport, SparesThere, TopologyReport
from extender.simulate.placing import SimulatedGang
from gangs.words import ranks_text
from muster.api.grammar import many, verb
from muster.resources.gpus import is_gpu
from muster.resources.vector import PODS, Vector, amount_text
from musterctl.output.table import drawn
from musterctl.output.terminal import Console

STYLES = {"title": "bold", "good": "green", "bad": "yellow", "plain": "", "hint": "cyan"}
LABEL_WIDTH = 15
BAR = 20
"""Width of a full bar in characters."""
NAMED = 8
"""Maximum number of names in one line of output."""
_IN_CELL = 2
"""Maximum number of names in one cell of a table."""
NONE_LINES = (
    "no topology exists: no levels of the plugin topology, no Topology of Kueue, and no HyperNode;",
    "gangs can still request one domain of any node label, such as topology.kubernetes.io/zone (docs/topology.md)",
)


def print_report(report: Any, lines: Iterable[TextLine | str], output: str) -> None:
    """Print the lines of a report; with the output `json` or `yaml`, print the report itself."""
    if output == "text":
        print_lines(lines)
    else:
        print_data(report, output)


def print_lines(lines: Iterable[TextLine | str]) -> None:
    """Print a label and a text in two columns; without colour and line breaks if the output is not a terminal."""
    console = Console(highlight=False)
    for line in lines:
        if isinstance(line, str):
            click.echo(line)
            continue
        inner = bool(line.label) or line.tone in {"plain", "hint"}
        indent = " " * LABEL_WIDTH if inner else ""
        width = max(20, console.width - len(indent)) if console.is_terminal else 0
        rows = wrap(line.text, width, break_long_words=False, break_on_hyphens=False) if width else [line.text]
        for number, row in enumerate(rows or [""]):
            label = f"{line.label:<{LABEL_WIDTH - 1}} " if inner and not number else indent
            text = Text.assemble((label, "dim"), (row, STYLES[line.tone]))
            text.rstrip()
            console.print(text, soft_wrap=True)


def print_data(report: Any, output: str) -> None:
    """Print a report as `json` or `yaml`, for programs; it has the same facts as the text, with stable names."""
    text = msgspec.json.encode(report)
    if output == "yaml":
        click.echo(yaml.safe_dump(msgspec.json.decode(text), sort_keys=False, allow_unicode=True), nl=False)
    else:
        click.echo(msgspec.json.format(text, indent=2).decode())


def simulated_lines(gangs_after: list[SimulatedGang], ignored: list[str]) -> Iterator[TextLine]:
    """Yield the lines about a simulation: the nodes or the reason of each gang, then the objects that were ignored."""
    if not gangs_after:
        yield TextLine("", "no gang waits")
    for outcome in gangs_after:
        who = outcome.workload + (" (submitted)" if outcome.submitted else "")
        if outcome.placed:
            pods = many(outcome.slots, "pod")
            yield TextLine("", f"{who} would start: {pods}", "good")
            for nodes in outcome.nodes:
                yield TextLine("on", nodes)
            for victim in outcome.evicts:
                yield TextLine("moves" if victim.moved else "evicts", victim.text)
        elif outcome.why:
            yield TextLine("", f"{who} would wait", "bad")
            yield TextLine("why", outcome.why.message)
            queue = outcome.why.queue
            yield TextLine("queue", f"{queue.name}, place {queue.place} of {queue.waiting} in it")
    yield from _left_out(ignored)


def demand_lines(demands: Sequence[QueueDemand], ignored: Sequence[str]) -> Iterator[TextLine]:
    """Yield lines about what new gangs request, and about the limits of their queues."""
    for demand in demands:
        yield TextLine("", f"{demand.workload} (submitted) would request nodes", "title")
        for pod_set in demand.pod_sets:
            yield TextLine("needs", pod_set)
        yield TextLine("", f"{demand.min_member} of them start together")
        there = demand.waiting
        waits = "" if there is None else f", {many(there, 'gang')} {verb(there, 'wait')} in it now"
        yield TextLine("queue", demand.queue + waits)
        for remark in demand.remarks:
            yield TextLine("", remark)
    yield from _left_out(ignored)


def place_lines(gangs: Sequence[GangPlaces]) -> Iterator[TextLine]:
    """Yield the nodes of gangs in rank order."""
    if not gangs:
        yield TextLine("", "no gang has nodes")
    for gang in gangs:
        yield TextLine("", gang.workload, "title")
        for nodes in gang.nodes or ["no node yet"]:
            yield TextLine("on", nodes)


def _left_out(ignored: Iterable[str]) -> Iterator[TextLine]:
    for what in ignored:
        yield TextLine("left out", f"{what}: there is nothing to place")


def top_lines(reports: Sequence[QueueReport], resource: str) -> Iterator[str]:
    """Yield a line for each queue: usage and share of one resource, by default the main one, and waiting gangs."""
    waiting, usual = _waiting(reports), _main(reports[0]) if reports else PODS
    rows = [["QUEUE", "RESOURCE", "USED", "FAIR", "DESERVED", "SHARE", "WAITING"]]
    for report in reports:
        name = resource or _main(report, usual)
        amounts = [each.get(name, 0) for each in (report.allocated, report.fair_share, report.deserved)]
        words = [amount_text(name, amount) for amount in amounts]
        gangs = f"{waiting[report.queue]}{_of_it_spares(report, name)}{_of_budget(report)}"
        rows.append(["  " * report.depth + report.queue, name, *words, bar(report.share(name)), gangs])
    yield from drawn(rows, right=range(2, 5))


def _of_it_spares(report: QueueReport, name: str) -> str:
    """Return a text about the amount of a resource that a queue's spare slots use; "" if no spare slot uses it."""
    kept = report.spares.get(name, 0)
    return f" ({amount_text(name, kept)} kept as spares)" if kept else ""


def _of_budget(report: QueueReport) -> str:
    """Return a text about the usage budget that the queue has used most; "" if the queue has no budget."""
    if not report.budgets:
        return ""
    most = max(report.budgets, key=lambda each: -1.0 if each.used is None else each.used)
    if most.used is None:
        return " (the usage of its budget is unknown)"
    return f" ({most.used:.0%} of the budget of {most.resource} per {most.period} used)"


def _waiting(reports: Sequence[QueueReport]) -> dict[str, int]:
    """Return the number of waiting gangs in each queue and its descendants, keyed by queue.

    In `reports`, parents come before their children.
    """
    total = {report.queue: report.waiting for report in reports}
    for report in reversed(reports):
        if report.parent in total:
            total[report.parent] += total[report.queue]
    return total


def _main(report: QueueReport, usual: str = PODS) -> str:
    """Return the main resource of a queue, of which the queue uses the largest part of its fair share.

    If shares are equal, GPUs come first. For a queue without usage, return a resource that the queue deserves, or else
    the `usual` resource.
    """
    used, deserved = ({name for name in each if each[name]} - {PODS} for each in (report.allocated, report.deserved))
    among = used or deserved
    return max(sorted(among, key=_scarce), key=lambda name: round(report.share(name), 2), default=usual)


def _scarce(name: str) -> tuple[bool, bool, str]:
    """Return a sort key for resources with equal shares: GPUs, then other extended resources, then cpu and memory."""
    return not is_gpu(name), "/" not in name, name


def bar(share: float) -> str:
    """Return a share as a bar, followed by the percentage."""
    filled = min(BAR, round(share * BAR))
    return f"{'#' * filled}{'.' * (BAR - filled)} {share:4.0%}"


def queue_lines(report: QueueReport) -> Iterator[str]:
    """Yield the lines about one queue: its amounts, and its waiting gangs with their reasons."""
    yield f"Queue {report.queue}" + (f", below {report.parent}" if report.parent else "")
    yield f"  weight {report.weight}, priority {report.priority}"
    columns = (report.allocated, report.fair_share, report.deserved, report.guarantee, report.capability)
    resources = sorted({name for amounts in columns for name in amounts} - {PODS})
    rows = [[name, *(_cell(name, amounts) for amounts in columns), bar(report.share(name))] for name in resources]
    heads = ["", "used", "fair share", "deserved", "guarantee", "capability", ""]
    yield from (f"  {line}" for line in drawn([heads, *rows], right=range(1, 6)))
    yield from (f"  {limit}" for limit in report.limits)
    for budget in report.budgets:
        used = "usage unknown" if budget.used is None else f"{budget.used:.0%} used"
        yield f"  budget of {budget.resource} per {budget.period}: {used}"
    kept = ", ".join(
        f"{amount_text(name, amount)} {name}" for name, amount in sorted(report.spares.items()) if name != PODS
    )
    if kept:
        yield f"  the used amounts include spares of gangs: {kept}"
    yield f"  {report.waiting} {'gang waits' if report.waiting == 1 else 'gangs wait'} in it"
    for gang in report.first:
        yield f"    {gang.workload or gang.gang}: {gang.message} ({gang.reason})"
    if report.message:
        yield f"    {report.message}"


def own_queue_lines(queues: Sequence[OwnQueue]) -> Iterator[str]:
    """Yield a line for each queue: the numbers of the user's running and waiting gangs, and the first position."""
    heads = ("QUEUE", "YOUR RUNNING", "YOUR WAITING", "FIRST PLACE", "EXPECTED START")
    rows = [
        (each.queue, str(each.running), str(each.waiting), each.place or "-", each.expected_start or "-")
        for each in queues
    ]
    yield from drawn([heads, *rows])
    if not rows:
        yield "this namespace has no gangs in a queue"


def _cell(resource: str, amounts: Vector) -> str:
    return amount_text(resource, amounts[resource]) if resource in amounts else "-"


def topology_lines(report: TopologyReport, gang: str = "") -> Iterator[str]:
    """Yield the lines about one topology; `gang` names the gang whose ranks are shown, or is empty."""
    levels = ", ".join(report.levels) or "no levels"
    yield f"Topology {report.name}: {levels}; {many(report.nodes, 'node')}"
    spares = any(domain.spares.seats for domain in report.domains)
    rows = list(_rows(report.domains, gang=bool(gang), spares=spares))
    if rows:
        resources = list(report.domains[0].room)
        heads = ["DOMAIN", "LEVEL", "NODES", "UNUSED", *(f"{each} FREE/ALL" for each in resources), "FRAGMENTED"]
        more = [*(["SPARES"] if spares else []), *([f"RANKS OF {gang}"] if gang else [])]
        yield from drawn([[*heads, *more], *rows], right=range(2, len(heads)))
    else:
        yield "  no node is in a domain"
    if report.outside:
        here = f"; there of {gang}: {ranks_text(report.elsewhere)}" if gang and report.elsewhere else ""
        yield f"in no domain: {_names(report.outside)}{here}"
    if report.empty:
        yield f"without nodes: {_names(report.empty)}"
    for name, members in report.missing.items():
        yield f"HyperNode {name} names members that do not exist: {_names(members)}"
    problems: dict[str, list[str]] = {}
    for name, messages in report.problems.items():
        for message in messages:
            problems.setdefault(message, []).append(name)
    for message, names in problems.items():
        yield f"! {_names(names)}: {message}"


def _spares_text(there: SparesThere) -> str:
    """Return a text about spare slots, such as `8 of Job ns/train, 4 lent to Job ns/guest`; "" without spares."""
    if not there.seats:
        return ""
    lent = f", {there.lent} lent to {_names(there.borrowers, _IN_CELL)}" if there.lent else ""
    return f"{there.seats} of {_names(there.keepers, _IN_CELL)}{lent}"


def _rows(
    domains: Sequence[DomainReport], indent: str | None = None, *, gang: bool, spares: bool
) -> Iterator[list[str]]:
    """Yield a row for each domain, followed by its inner domains.

    The argument `indent` is the prefix of branches; None at the top.
    """
    for place, each in enumerate(domains):
        last = place == len(domains) - 1
        branch = "" if indent is None else indent + ("`-- " if last else "|-- ")
        below = "" if indent is None else indent + ("    " if last else "|   ")
        room = [f"{amount_text(name, one.free)}/{amount_text(name, one.all)}" for name, one in each.room.items()]
        share = "-" if each.fragmented is None else f"{each.fragmented:.0%}"
        cells = [branch + each.name, each.level, str(each.nodes), str(each.unused), *room, share]
        more = [*([_spares_text(each.spares)] if spares else []), *([ranks_text(each.ranks)] if gang else [])]
        yield [*cells, *more]
        yield from _rows(each.domains, below, gang=gang, spares=spares)


def _names(names: Sequence[str], most: int = NAMED) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")

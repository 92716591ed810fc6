"""Avoidance of nodes on which members of a gang failed: only this gang avoids the nodes, for longer after each failure.

On a node with an undetected hardware fault, members fail again and again. After a member's failure, the gang's
placements therefore exclude the node for one minute. Each further failure of a member on the node doubles the time of
exclusion, up to one hour. The annotation `muster.dev/avoid-failed-node` sets the first exclusion to another time than
one minute; with the value 0s, no node is excluded.

In a distributed program, the failure of one member often makes the others fail, so a failure does not always point to a
node. Without the annotation `muster.dev/avoid-failed-node`, nodes are therefore excluded only if members failed on at
most half of the gang's nodes. A gang on a single node excludes no node. Evicted or preempted members do not count as
failed.
"""

from collections.abc import Collection
from math import ceil

from extender.planner import reasons
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.state.avoided import entries_of
from extender.planner.state.gangs import GangView
from extender.planner.state.pods import PodRecord
from muster.api import names
from muster.api.kubernetes.meta import format_time, readable_time
from muster.api.muster.placement import AvoidedNode
from muster.resources.delays import doubled_s
from muster.resources.faults import seconds_of

FIRST_S = 60.0
LONGEST_S = 3_600.0
FORGET_S = 86_400.0
"""Seconds for which an expired avoidance is remembered; another failure then makes the next one longer."""
MOST = 32
"""Maximum number of nodes remembered in a gang's Placement; the longest avoidances are kept."""


def note_failures(session: Session, gang: GangView) -> None:
    """Decide Avoid for nodes on which members have failed since the last cycle; they are avoided from this cycle on."""
    failed = session.snapshot.failed.get(gang.key, {})
    if not failed:
        return
    first_s = seconds_of(gang.options, names.AVOID_FAILED_NODE)
    if first_s is None:
        first_s = FIRST_S if _distinguishable(gang, failed.keys()) else 0.0
    entries = entries_of(gang, session.snapshot.remembered)
    new = {node: pod for node, pod in failed.items() if first_s and not _counted(entries, node, pod)}
    for node, pod in new.items():
        entries[node] = _entry(entries.get(node), pod, first_s, session.now)
        session.avoided.setdefault(gang.key, set()).add(node)
        session.failed_on.setdefault(gang.key, set()).add(node)
    kept = [each for each in entries.values() if is_remembered(each, session.now)]
    kept.sort(key=lambda each: each.until, reverse=True)
    avoided = tuple(sorted(kept[:MOST], key=lambda each: each.node)) if new else None
    session.decide(decisions.Avoid(gang, avoided, tuple(failed.values())))


def is_remembered(entry: AvoidedNode, now: float) -> bool:
    """Return True for a node that is avoided, or was avoided so recently that a new failure doubles the time."""
    until = readable_time(entry.until) or 0.0
    return until > now or (entry.failures > 0 and until + FORGET_S > now)


def _entry(before: AvoidedNode | None, pod: PodRecord, first_s: float, now: float) -> AvoidedNode:
    times = (before.failures if before else 0) + 1
    until = now + doubled_s(first_s, times - 1, max(first_s, LONGEST_S))
    return AvoidedNode(
        node=pod.node,
        until=format_time(ceil(until)),
        cause=reasons.placements.failed_there(pod.name, times),
        failures=times,
        failed_at=format_time(ceil(now)),
    )


def _counted(entries: dict[str, AvoidedNode], node: str, pod: PodRecord) -> bool:
    """Return True if another failure of the same run has already been counted on this node."""
    known = entries.get(node)
    if known is None or not known.failures:
        return False
    return (readable_time(pod.created) or 0.0) <= (readable_time(known.failed_at) or 0.0)


def _distinguishable(gang: GangView, failed: Collection[str]) -> bool:
    """Return True if the gang uses several nodes, and members failed on at most half of the nodes."""
    runs = (run for pod_set in gang.placement.spec.pod_sets for run in pod_set.runs) if gang.placement else ()
    nodes = {run.node for run in runs if run.node}
    return len(nodes) > 1 and 2 * len(failed) <= len(nodes)

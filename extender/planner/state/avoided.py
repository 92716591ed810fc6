"""Nodes that a gang leaves out, as its Placement says; and members that failed and are not counted there yet."""

from collections.abc import Collection, Iterable

from extender.planner.state.gangs import GangView
from extender.planner.state.pods import PodRecord
from muster.api.kubernetes.meta import readable_time

MOST_FAILED = 10_000
"""Gangs with failures that the planner has not counted yet; it does so in its next cycle."""


class Failures:
    """The newest member that failed on a node, by gang: it counts also if its pod is gone when the planner looks."""

    def __init__(self) -> None:
        self._of: dict[str, dict[str, PodRecord]] = {}
        """Key of a gang → node → member."""

    def note(self, before: PodRecord | None, record: PodRecord) -> None:
        """Take a pod as it is now and was before, which may have failed by now."""
        if not record.failed or (before is not None and before.failed) or not record.gang or not record.node:
            return
        known = self._of.setdefault(record.gang, {})
        if record.node not in known or known[record.node].created <= record.created:
            known[record.node] = record
        while len(self._of) > MOST_FAILED:
            del self._of[next(iter(self._of))]

    def forget(self, key: str, uids: Collection[str] | None = None) -> None:
        """Forget these members of a gang, which have been counted; by default all, as the gang is gone."""
        left = {node: pod for node, pod in self._of.pop(key, {}).items() if uids is not None and pod.uid not in uids}
        if left:
            self._of[key] = left

    def copy(self) -> dict[str, dict[str, PodRecord]]:
        """Return key of a gang → node → member."""
        return {key: dict(nodes) for key, nodes in self._of.items()}


def failed_nodes(gangs: Iterable[GangView], now: float) -> dict[str, set[str]]:
    """Return gang key → nodes that are left out as a member failed there; `now` is seconds since the epoch."""
    result: dict[str, set[str]] = {}
    for gang in gangs:
        for each in gang.placement.status.avoided if gang.placement else ():
            if each.failures and (readable_time(each.until) or 0.0) > now:
                result.setdefault(gang.key, set()).add(each.node)
    return result


def avoided_nodes(gangs: Iterable[GangView], now: float) -> dict[str, set[str]]:
    """Return gang key → nodes that refused a member of it lately, or where one failed; `now` as above."""
    result: dict[str, set[str]] = {}
    for gang in gangs:
        for each in gang.placement.status.avoided if gang.placement else ():
            if (readable_time(each.until) or 0.0) > now:
                result.setdefault(gang.key, set()).add(each.node)
    return result

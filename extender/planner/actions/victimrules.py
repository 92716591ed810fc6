"""Rules that excluded all victims of a waiting gang, added to the message about the gang.

A rule is kept for all gangs of the same queue, priority and shape until the next search for one of them.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from extender.planner.actions.attempts import Key
from extender.planner.framework.decisions import Unschedulable
from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView
from muster.api.muster.reason import Reason

Excluded = dict[tuple[str, Hashable], Reason]
"""Maps the queue, priority and shape of a waiting gang to the rule that excluded all victims in a failed search."""


@dataclass(slots=True)
class _Failure:
    """The last failed search for gangs of one shape."""

    rule: Reason
    """The rule that excluded all victims."""
    cycle: int = 0
    """Number of the last cycle in which a gang of this shape waited."""


class _Reported(NamedTuple):
    """A decision about a waiting gang, the failed search and its rule, and the decision extended by the rule."""

    why: Unschedulable
    failure: _Failure
    rule: Reason
    extended: Unschedulable


class ExcludingRules:
    """The rules that excluded all victims in the last searches of one action, kept from cycle to cycle."""

    def __init__(self) -> None:
        self._failures: dict[tuple[str, Hashable], _Failure] = {}
        self._reported: dict[str, _Reported] = {}
        """Maps the key of a gang to its extended decision in the last cycle."""
        self._cycle = 0

    def note(self, failed: Excluded) -> None:
        """Record this cycle's failed searches; an empty rule removes the earlier rule."""
        for key, rule in failed.items():
            failure = self._failures.pop(key, None) or _Failure(rule)
            failure.rule = rule
            if rule:
                self._failures[key] = failure

    def report(
        self, session: Session, waiting: Sequence[Unschedulable], key_of: Callable[[Session, GangView], Key]
    ) -> None:
        """Add the rules to the decisions about these gangs, and forget the rules of shapes of which no gang waits.

        Gangs that this cycle does not evaluate get no new rule.
        """
        self._cycle += 1
        before, self._reported = self._reported, {}
        queues = {queue for queue, _ in self._failures}
        more: dict[int, Unschedulable] = {}
        for why in waiting:
            gang = why.gang
            if gang.queue not in queues:
                continue
            known = before.get(gang.key)
            if known is None or known.why is not why or known.rule is not known.failure.rule:
                if known is None and gang.key in session.postponed:
                    continue
                queue, _, shape = key_of(session, gang)
                failure = self._failures.get((queue, shape))
                if failure is None:
                    continue
                known = _Reported(why, failure, failure.rule, replace(why, why=why.why.also(failure.rule)))
            known.failure.cycle = self._cycle
            self._reported[gang.key] = known
            more[id(why)] = known.extended
        for key in [key for key, failure in self._failures.items() if failure.cycle != self._cycle]:
            del self._failures[key]
        if more:
            session.decisions = [more.get(id(each), each) for each in session.decisions]  # in scheduling order

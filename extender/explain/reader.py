"""The reader of a report, and the names that a report shows to readers who may not see the whole cluster.

A reason with data is shown with only those names that the reader may see. A reason without data, from a third-party
plugin or an older version, may contain any name. Instead of a reason without data, a restricted reader sees a general
sentence.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

from msgspec import structs

from extender.explain.members import gang_text
from extender.planner.framework import decisions
from extender.planner.framework.decisions import Decision
from extender.planner.reasons.shortages import Shortage
from extender.planner.state.gangs import GangView
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.muster.reason import Reason, constant, quoted

HIDDEN = "(hidden)"
"""The text that replaces the name of a queue that the reader may not see."""
UNTOLD = constant("untold", "the reason is shown only to users who may see the whole cluster")


@dataclass(frozen=True, slots=True)
class Viewer:
    """A reader of a report, who by default may see everything.

    If `called` is set, the reader sees only the namespaces in `sees`, and all queues except those in `hidden`.
    """

    called: Callable[[str, str], str] | None = None
    """Maps the namespace and name of a gang, workload or pod in another namespace to the name that is shown instead."""
    sees: Callable[[str], bool] = lambda _: True
    hidden: Collection[str] = ()

    def gang(self, gang: GangView) -> str:
        """Return a gang's name as the reader may see it."""
        return self.other(gang.group.metadata, gang.group.metadata.name, gang_text(gang))

    def other(self, meta: ObjectMeta, name: str, text: str) -> str:
        """Return the `text` about an object, or a general text if the reader may not see its namespace."""
        return text if self.called is None or self.may_see(meta) else self.called(meta.namespace, name)

    def may_see(self, meta: ObjectMeta) -> bool:
        """Return True if the reader may see the name and size of an object."""
        return self.called is None or self.sees(meta.namespace)

    def reason(self, reason: Reason) -> Reason:
        """Return a reason with only the names that the reader may see."""
        if self.called is None:
            return reason
        if reason.code == quoted.code:
            return UNTOLD
        return reason.given(**{name: self._param(name, each) for name, each in reason.params.items()})

    def decision(self, decided: Decision) -> Decision:
        """Return a decision with only the names that the reader may see in its reasons."""
        match decided:
            case decisions.Unschedulable(why=why, shortage=lacks):
                return replace(decided, why=self.reason(why), shortage=self.shortage(lacks) if lacks else None)
            case decisions.ClosePlacement(why=why):
                return replace(decided, why=self.reason(why))
            case decisions.Place(victims_reason=why):
                return replace(decided, victims_reason=self.reason(why))
        return decided

    def shortage(self, lacks: Shortage) -> Shortage:
        """Return a shortage with only the names that the reader may see in its causes."""
        if self.called is None:
            return lacks
        causes = ((cause, self.reason(cause.why)) for cause in lacks.causes)
        return structs.replace(
            lacks, causes=tuple(structs.replace(cause, why=why, words=str(why)) for cause, why in causes)
        )

    def _param(self, name: str, value: Any) -> Any:
        match value:
            case Reason():
                return self.reason(value)
            case Shortage():
                return self.shortage(value)
            case list() | tuple():
                return [self._param(name, each) for each in value]
        return HIDDEN if name == "queue" and value in self.hidden else value


ALL = Viewer()

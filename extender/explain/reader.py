"""The user who reads a report, and the names shown to a user who is not allowed to see the whole cluster.

A reason with data is shown with only the names visible to the user. A reason without data, from a third-party plugin or
an older version, may contain any name. Instead of a reason without data, a user with restricted access sees a general
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
"""The text shown instead of the name of a queue that is hidden from the user."""
UNTOLD = constant("untold", "the reason is shown only to users who may see the whole cluster")


@dataclass(frozen=True, slots=True)
class Viewer:
    """A user who reads a report, and who by default is allowed to see everything.

    If `called` is set, the user sees only the namespaces for which `sees` returns True, and all queues except those in
    `hidden`.
    """

    called: Callable[[str, str], str] | None = None
    """Maps the namespace and name of a gang, workload or pod in another namespace to the name that is shown instead."""
    sees: Callable[[str], bool] = lambda _: True
    hidden: Collection[str] = ()

    def gang(self, gang: GangView) -> str:
        """Return the name of a gang that is shown to the user."""
        return self.other(gang.group.metadata, gang.group.metadata.name, gang_text(gang))

    def other(self, meta: ObjectMeta, name: str, text: str) -> str:
        """Return the `text` about an object, or a general text if the object's namespace is hidden from the user."""
        return text if self.called is None or self.may_see(meta) else self.called(meta.namespace, name)

    def may_see(self, meta: ObjectMeta) -> bool:
        """Return True if the name and size of an object are visible to the user."""
        return self.called is None or self.sees(meta.namespace)

    def reason(self, reason: Reason) -> Reason:
        """Return a reason with only the names that are visible to the user."""
        if self.called is None:
            return reason
        if reason.code == quoted.code:
            return UNTOLD
        return reason.given(**{name: self._param(name, each) for name, each in reason.params.items()})

    def decision(self, decided: Decision) -> Decision:
        """Return a decision whose reasons contain only names that are visible to the user."""
        match decided:
            case decisions.Unschedulable(why=why, shortage=lacks):
                return replace(decided, why=self.reason(why), shortage=self.shortage(lacks) if lacks else None)
            case decisions.ClosePlacement(why=why):
                return replace(decided, why=self.reason(why))
            case decisions.Place(victims_reason=why):
                return replace(decided, victims_reason=self.reason(why))
        return decided

    def shortage(self, lacks: Shortage) -> Shortage:
        """Return a shortage whose causes contain only names that are visible to the user."""
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

"""Components: the objects that a workload needs, as component builders make them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from muster.api.fields import FieldError, Findings
from muster.runtime.plan import Plan
from muster.workloads.adapter import Owner

KeyKind = Literal["ed25519", "ecdsa"]


@dataclass(frozen=True, slots=True)
class Component:
    """One object, ready to apply (by server-side apply).

    Components of a lower `stage` must be done (a Job complete, another object applied) before those of the next one.
    `once`: create it if there is none, and never change it again. `keys`: an SSH Secret whose data are still missing,
    since this package makes no random numbers; `certs.ssh` fills them in.
    """

    manifest: Mapping[str, Any]
    plugin: str
    stage: int = 0
    once: bool = False
    keys: KeyKind | None = None

    @property
    def kind(self) -> str:
        """The kind of the object, which decides where it is applied."""
        return str(self.manifest["kind"])

    @property
    def name(self) -> str:
        """The name of the object, in the namespace of its workload."""
        return str(self.manifest["metadata"]["name"])


@dataclass(frozen=True, slots=True)
class Compiled:
    """The result for a workload. With errors there is neither a plan nor a component; warnings don't stop it."""

    plan: Plan | None
    components: tuple[Component, ...]
    findings: Findings

    @property
    def errors(self) -> list[FieldError]:
        """All mistakes of the workload; with any, nothing was compiled."""
        return self.findings.errors


def owned(owner: Owner, name: str) -> dict[str, Any]:
    """The metadata of an object that is deleted with its workload."""
    return {"name": name, "namespace": owner.namespace, "ownerReferences": [owner.reference()]}


def metadata_of(plan: Plan, name: str) -> dict[str, Any]:
    """The metadata of an object that makes the pods of a workload: owner, labels and annotations of its template."""
    result = owned(plan.owner, name)
    for key, values in (("labels", plan.labels), ("annotations", plan.annotations)):
        if values:
            result[key] = dict(values)
    return result

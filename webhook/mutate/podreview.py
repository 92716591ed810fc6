"""The state of a pod's mutation, which all steps share: the pod, the results of earlier steps, and the patch.

Each step of `webhook.mutate.pod` can add operations, errors or warnings; the manifest of the pod is not changed.
"""

from dataclasses import dataclass, field
from typing import Any, Self

import msgspec

from muster.api import names
from muster.api.fields import FieldError
from muster.api.kubernetes.core import PodSpec
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.muster.pools import DEFAULT_POOL, in_pool
from webhook.config import ResourceGroup
from webhook.mutate.optin import OptIn
from webhook.patch import Patch
from webhook.review import ReviewVerdict

JSON = dict[str, Any]


@dataclass(slots=True)
class PodReview:
    """A pod under review, with its namespace.

    The namespace is taken from the review, because the pod itself may not name its namespace.
    """

    document: JSON
    namespace: str
    meta: ObjectMeta
    typed_spec: PodSpec
    """The pod's spec, decoded and reduced to the fields that Muster has types for; `spec` is the whole spec as JSON."""
    patch: Patch
    group: ResourceGroup | None = None
    """The resource group of the pod; None if the pod is in no group."""
    opt_in: OptIn | None = None
    """The queue that the pod or its namespace names; None if neither opts in."""
    pool: str = DEFAULT_POOL
    """The node pool of the pod's queue."""
    errors: list[FieldError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @classmethod
    def read_pod(cls, document: JSON, meta: ObjectMeta, namespace: str) -> Self:
        """Read the spec, so that all steps can rely on its types; ValidationError names the malformed field."""
        return cls(document, namespace, meta, msgspec.convert(document.get("spec") or {}, PodSpec), Patch(document))

    @property
    def spec(self) -> JSON:
        """The pod's whole spec as JSON; empty if the spec is missing."""
        return self.document.get("spec") or {}

    @property
    def assigned_scheduler(self) -> str:
        """The scheduler that the resource group sets for all its pods; "" if the group sets no scheduler."""
        return self.group.scheduler_name if self.group else ""

    @property
    def scheduler(self) -> str:
        """The resulting scheduler of the pod: its resource group's, its own, or Muster's.

        A pod that opts in without naming a scheduler gets Muster's scheduler for the node pool of its queue.
        """
        own = self.assigned_scheduler or self.spec.get("schedulerName") or names.CLUSTER_SCHEDULER
        if not self.opt_in:
            return own
        if own == names.CLUSTER_SCHEDULER and not self.assigned_scheduler:
            own = names.SCHEDULER
        return in_pool(own, self.pool) if own in names.SCHEDULERS else own

    @property
    def verdict(self) -> ReviewVerdict:
        """The verdict of the review: the patch with its reasons, or all errors. Warnings are included in both cases."""
        if self.errors:
            return ReviewVerdict(errors=self.errors, warnings=self.warnings)
        return ReviewVerdict.admitted_with(self.patch, self.warnings)

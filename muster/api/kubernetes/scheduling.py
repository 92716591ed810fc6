"""Kubernetes' own gangs: PodGroup and Workload of scheduling.k8s.io/v1beta1, and the fields that refer to them.

Kubernetes 1.37 and later serve PodGroups and Workloads if the feature gate GenericWorkload is enabled. Groups of groups
(CompositePodGroups) are served only as v1alpha3, if the gate CompositePodGroup is enabled. The types of this module
contain only the fields that Muster uses.
"""

from typing import Any

from msgspec import field

from muster.api.base import Resource, Wire
from muster.api.kubernetes.meta import Condition, Object

INITIALLY_SCHEDULED = "PodGroupInitiallyScheduled"
"""Condition of a PodGroup: enough of its pods have been scheduled at least once. Once this condition is True, it stays
True."""
UNSCHEDULABLE = "Unschedulable"
"""Reason in the condition PodGroupInitiallyScheduled while the PodGroup waits for free capacity."""
SCHEDULED = "Scheduled"
"""Reason in the condition PodGroupInitiallyScheduled once enough pods have been scheduled, as kube-scheduler names
it."""
DISRUPTION_TARGET = "DisruptionTarget"
"""Condition of a PodGroup whose pods will be evicted in favour of other pods."""
PREEMPTION_BY_SCHEDULER = "PreemptionByScheduler"
"""Reason of the condition DisruptionTarget."""


class Policy(Wire):
    """The policy `basic`, or a disruption mode: neither has fields, so only its presence matters."""


class GangPolicy(Wire):
    """The policy `gang` of a group of pods."""

    min_count: int = 0
    """Number of pods that must start together; the only field of a PodGroup's spec that may change."""


class SchedulingPolicy(Wire):
    """Scheduling policy of a group's pods; exactly one of the two fields is set."""

    basic: Policy | None = None
    gang: GangPolicy | None = None


class TopologyConstraint(Wire):
    """The requirement that all pods of the group run on nodes with the same value of a label."""

    key: str = ""


class SchedulingConstraints(Wire):
    """Required proximity of the pods of a group; the API currently allows at most one constraint."""

    topology: list[TopologyConstraint] = field(default_factory=list)


class DisruptionMode(Wire):
    """Disruption mode of a running group's pods: each pod alone, or all pods together. Exactly one field is set."""

    single: Policy | None = None
    all: Policy | None = None


class GroupResourceClaim(Wire):
    """A ResourceClaim that the pods of a group share. Pods refer to the claim by the same name in their own spec."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class WorkloadReference(Wire):
    """The Workload from which a PodGroup was created."""

    workload_name: str = ""


class NativePodGroupSpec(Wire):
    """spec of a native PodGroup."""

    parent_composite_pod_group_name: str | None = None
    """The composite group to which this group belongs (gate CompositePodGroup)."""
    workload_ref: WorkloadReference | None = None
    scheduling_policy: SchedulingPolicy = field(default_factory=SchedulingPolicy)
    scheduling_constraints: SchedulingConstraints | None = None
    resource_claims: list[GroupResourceClaim] = field(default_factory=list)
    disruption_mode: DisruptionMode | None = None
    priority_class_name: str = ""
    priority: int | None = None
    preemption_policy: str | None = None


class GroupResourceClaimStatus(Wire):
    """The ResourceClaim that was created for a group from a template."""

    name: str = ""
    resource_claim_name: str | None = None


class NativePodGroupStatus(Wire):
    """status of a native PodGroup, written by its scheduler and the controller of claims."""

    conditions: list[Condition] = field(default_factory=list)
    resource_claim_statuses: list[GroupResourceClaimStatus] = field(default_factory=list)


class NativePodGroup(Object):
    """A PodGroup of Kubernetes itself; pods refer to it with `spec.schedulingGroup.podGroupName`."""

    spec: NativePodGroupSpec = field(default_factory=NativePodGroupSpec)
    status: NativePodGroupStatus = field(default_factory=NativePodGroupStatus)


class CompositeGangPolicy(Wire):
    """The policy `gang` of a group of groups."""

    min_group_count: int = 0


class CompositeSchedulingPolicy(Wire):
    """Scheduling policy of a composite group's groups; exactly one of the two fields is set."""

    basic: Policy | None = None
    gang: CompositeGangPolicy | None = None


class CompositePodGroupSpec(Wire):
    """spec of a CompositePodGroup, which is a group of groups."""

    parent_composite_pod_group_name: str | None = None
    workload_ref: WorkloadReference | None = None
    scheduling_policy: CompositeSchedulingPolicy = field(default_factory=CompositeSchedulingPolicy)
    scheduling_constraints: SchedulingConstraints | None = None
    disruption_mode: DisruptionMode | None = None
    priority_class_name: str = ""
    priority: int | None = None
    preemption_policy: str | None = None


class CompositePodGroup(Object):
    """A CompositePodGroup, which is a group of groups (gate CompositePodGroup)."""

    spec: CompositePodGroupSpec = field(default_factory=CompositePodGroupSpec)


class PodGroupTemplate(Wire):
    """A template of PodGroups in a Workload."""

    name: str = ""
    scheduling_policy: SchedulingPolicy = field(default_factory=SchedulingPolicy)
    scheduling_constraints: SchedulingConstraints | None = None
    resource_claims: list[GroupResourceClaim] = field(default_factory=list)
    disruption_mode: DisruptionMode | None = None
    priority_class_name: str = ""
    priority: int | None = None


class CompositePodGroupTemplate(CompositePodGroupSpec):
    """A template of composite groups in a Workload, with its parts; nested composite groups stay plain JSON."""

    name: str = ""
    pod_group_templates: list[PodGroupTemplate] = field(default_factory=list)
    composite_pod_group_templates: list[dict[str, Any]] = field(default_factory=list)


class WorkloadSpec(Wire):
    """spec of a Workload; templates of composite groups stay plain JSON."""

    pod_group_templates: list[PodGroupTemplate] | None = None
    """Templates of PodGroups; null if the Workload has templates of composite groups instead."""
    composite_pod_group_templates: list[dict[str, Any]] = field(default_factory=list)


class Workload(Object):
    """A Workload: templates from which the workload's controller creates PodGroups."""

    spec: WorkloadSpec = field(default_factory=WorkloadSpec)


class PodSchedulingGroup(Wire):
    """The native PodGroup of a pod; the field is immutable, so its value can be trusted."""

    pod_group_name: str | None = None


class JobScheduling(Wire):
    """`spec.scheduling` of a batch/v1 Job (gate WorkloadWithJob); without a policy, the Job is `basic`."""

    scheduling_policy: SchedulingPolicy | None = None
    scheduling_constraints: SchedulingConstraints | None = None
    disruption_mode: DisruptionMode | None = None
    resource_claims: list[GroupResourceClaim] = field(default_factory=list)


_GROUP = "scheduling.k8s.io"
NATIVE_POD_GROUPS = Resource(_GROUP, "v1beta1", "podgroups", "PodGroup", NativePodGroup)
COMPOSITE_POD_GROUPS = Resource(_GROUP, "v1alpha3", "compositepodgroups", "CompositePodGroup", CompositePodGroup)
WORKLOADS = Resource(_GROUP, "v1beta1", "workloads", "Workload", Workload)

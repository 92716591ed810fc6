"""A gang as PodGroup of Kubernetes' own (scheduling.k8s.io), and such a PodGroup as gang of Muster's.

Pure translations, for what publishes gangs, and for what shows users the one in the words of the other.
"""

from muster.api import names
from muster.api.kubernetes.meta import ObjectMeta, OwnerReference
from muster.api.kubernetes.scheduling import (
    NATIVE_POD_GROUPS,
    DisruptionMode,
    GangPolicy,
    NativePodGroup,
    NativePodGroupSpec,
    Policy,
    SchedulingPolicy,
)
from muster.api.volcano.scheduling import POD_GROUPS, PodGroup, PodGroupSpec


def is_gang(group: PodGroup) -> bool:
    """True if pods start together: there is something to keep whole. A PodGroup that has ended is none any more."""
    return group.spec.min_member > 1 and group.status.phase != "Completed" and not group.metadata.deletion_timestamp


def native_of(group: PodGroup) -> NativePodGroup:
    """The native PodGroup of a gang: its minimum and priority; preemption ends all of it, or none."""
    meta = group.metadata
    owner = OwnerReference(
        api_version=POD_GROUPS.api_version, kind=POD_GROUPS.kind, name=meta.name, uid=meta.uid, controller=True
    )
    return NativePodGroup(
        api_version=NATIVE_POD_GROUPS.api_version,
        kind=NATIVE_POD_GROUPS.kind,
        metadata=ObjectMeta(
            name=meta.name,
            namespace=meta.namespace,
            labels={names.MANAGED_BY: names.MANAGER},
            owner_references=[owner],
        ),
        spec=NativePodGroupSpec(
            scheduling_policy=SchedulingPolicy(gang=GangPolicy(min_count=group.spec.min_member)),
            disruption_mode=DisruptionMode(all=Policy()),
            priority_class_name=group.spec.priority_class_name,
        ),
    )


def group_of(native: NativePodGroup) -> PodGroup:
    """The PodGroup of Muster's that says the same; the policy `basic` is a minimum of one, as each pod starts alone.

    A gang of Muster's is always ended whole or down to its minimum, so nothing stands for `disruptionMode`.
    """
    spec, gang, near = native.spec, native.spec.scheduling_policy.gang, native.spec.scheduling_constraints
    annotations = {names.TOPOLOGY_REQUIRED: near.topology[0].key} if near and near.topology else {}
    return PodGroup(
        api_version=POD_GROUPS.api_version,
        kind=POD_GROUPS.kind,
        metadata=ObjectMeta(name=native.metadata.name, namespace=native.metadata.namespace, annotations=annotations),
        spec=PodGroupSpec(
            min_member=gang.min_count if gang else 1,
            queue=native.metadata.labels.get(names.QUEUE) or names.DEFAULT_QUEUE,
            priority_class_name=spec.priority_class_name,
        ),
    )

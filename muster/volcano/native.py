"""Translation of gangs into Kubernetes' own PodGroups (scheduling.k8s.io), and of such PodGroups into gangs.

The functions are pure. They serve code that creates native PodGroups, and messages about gangs of both forms.
"""

from msgspec.structs import replace

from muster.api import names
from muster.api.kubernetes import scheduling
from muster.api.kubernetes.meta import ObjectMeta, OwnerReference
from muster.api.muster.native import MARKS, as_group, queue_of
from muster.api.volcano.scheduling import POD_GROUPS, PodGroup, PodGroupStatus


def is_gang(group: PodGroup) -> bool:
    """Return True if several pods must start together and the gang has not ended."""
    return group.spec.min_member > 1 and group.status.phase != "Completed" and not group.metadata.deletion_timestamp


def native_of(group: PodGroup) -> scheduling.NativePodGroup:
    """Return the native PodGroup of a gang, with its minimum and priority.

    In the native PodGroup, a preemption ends either the whole gang or none of its pods.
    """
    meta = group.metadata
    owner = OwnerReference.to(POD_GROUPS, meta, controller=True)
    return scheduling.NativePodGroup(
        api_version=scheduling.NATIVE_POD_GROUPS.api_version,
        kind=scheduling.NATIVE_POD_GROUPS.kind,
        metadata=ObjectMeta(
            name=meta.name, namespace=meta.namespace, labels={names.MANAGED_BY: names.MANAGER}, owner_references=[owner]
        ),
        spec=scheduling.NativePodGroupSpec(
            scheduling_policy=scheduling.SchedulingPolicy(gang=scheduling.GangPolicy(min_count=group.spec.min_member)),
            disruption_mode=scheduling.DisruptionMode(all=scheduling.Policy()),
            priority_class_name=group.spec.priority_class_name,
        ),
    )


def group_of(native: scheduling.NativePodGroup) -> PodGroup:
    """Return the equivalent PodGroup that a user of Muster would write, without Muster's own annotations."""
    gang, meta = as_group(native, queue_of(native) or names.DEFAULT_QUEUE), native.metadata
    given = gang.metadata.annotations
    kept = {key: given[key] for key in given if key.startswith(f"{names.DOMAIN}/") and key not in MARKS | {names.QUEUE}}
    return replace(
        gang,
        api_version=POD_GROUPS.api_version,
        kind=POD_GROUPS.kind,
        metadata=ObjectMeta(name=meta.name, namespace=meta.namespace, annotations=kept),
        status=PodGroupStatus(),
    )

"""Labels and annotations of other schedulers.

The table `FOREIGN` contains the keys that Muster reads, and replacements for keys that Muster does not read. Warnings
at admission and docs/admission.md are generated from this table.
"""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple

from muster.api import names
from muster.api.kubernetes.meta import ObjectMeta
from muster.workloads.table import plain_group


class ForeignKey(NamedTuple):
    """The key of a label or annotation, or a pattern of keys with `*`.

    If two entries match a key, the first entry applies.
    """

    key: str
    read: str = ""
    """The effect of the key in Muster; empty if Muster ignores the key."""
    instead: str = ""
    """The setting of Muster with the same effect as the key."""


_TOPOLOGY: Final = "names the level of a topology"
_MINIMUM: Final = "sets the number of pods that start together"
_DEVICES: Final = "requests a part of a GPU"
_OWN_MINIMUM: Final = f"annotation {names.MIN_MEMBER}"
_OWN_GROUP: Final = f"a PodGroup of scheduling.volcano.sh, which the pods name by label {names.GANG}"
_KUEUE: Final = "kueue.x-k8s.io/"
FOREIGN: Final = (
    ForeignKey("volcano.sh/task-topology-affinity", instead="pod affinity between the tasks, or a required topology"),
    ForeignKey("volcano.sh/task-topology-anti-affinity", instead="pod anti-affinity between the tasks"),
    ForeignKey("volcano.sh/task-topology-task-order", instead=f"label {names.TASK_PRIORITY}"),
    ForeignKey("volcano.sh/task-priority", instead=f"label {names.TASK_PRIORITY}"),
    ForeignKey("volcano.sh/numa-topology-policy", instead="topologyManagerPolicy of the kubelet"),
    ForeignKey("volcano.sh/cooldown-time", instead=f"annotation {names.PREEMPT_MIN_RUNTIME} of the Queue"),
    ForeignKey("volcano.sh/resource-strategy-*", instead="plugins of the scheduler configuration"),
    ForeignKey("volcano.sh/vgpu-*", instead=f"annotation {names.GPU_FRACTION}, or node affinity to a GPU model"),
    ForeignKey(names.VOLCANO_QUEUE, read="names the queue"),
    ForeignKey(names.VOLCANO_GROUP_MIN_MEMBER, read=_MINIMUM),
    ForeignKey("volcano.sh/network-topology-*", read=_TOPOLOGY),
    *(ForeignKey(key, read=_TOPOLOGY) for key in names.KUEUE_TOPOLOGY_KEYS),
    ForeignKey(names.KUEUE_GROUP, read=f"names the gang of plain pods with {names.KUEUE_TOTAL}", instead=_OWN_GROUP),
    ForeignKey(names.KUEUE_TOTAL, read=f"sets the size of a gang of {names.KUEUE_GROUP}", instead=_OWN_MINIMUM),
    ForeignKey(f"{_KUEUE}job-min-parallelism", instead=_OWN_MINIMUM),
    ForeignKey(f"{_KUEUE}priority-class", instead="priorityClassName of the pods"),
    ForeignKey(f"{_KUEUE}max-exec-time-seconds", instead="activeDeadlineSeconds"),
    ForeignKey(f"{_KUEUE}podset-*", instead=f"annotations {names.TOPOLOGY_REQUIRED} and related ones"),
    ForeignKey(names.KUEUE_QUEUE, read="no effect in Muster: Kueue reads the key, and can run alongside Muster"),
    ForeignKey(f"{_KUEUE}managed", read="no effect in Muster: Kueue writes the key"),
    ForeignKey(f"{_KUEUE}*", instead="Kueue alongside Muster, with the label queue-name of Kueue"),
    *(ForeignKey(key, read=_TOPOLOGY) for key in names.KAI_NEAR_KEYS),
    ForeignKey(names.KAI_TOPOLOGY, read="no effect: Muster finds a level by its node label"),
    ForeignKey(names.KAI_MIN_MEMBER, read=_MINIMUM),
    *(ForeignKey(key, read=_DEVICES) for key in (*names.GPU_SHARE_KEYS, names.GPU_CONTAINER)),
    ForeignKey("kai.scheduler/queue", instead=f"label {names.QUEUE}"),
    ForeignKey("kai.scheduler/preemptibility", instead=f"label {names.PREEMPTABLE}"),
    ForeignKey("kai.scheduler/subgroup-name", instead=f"{_OWN_GROUP}, with subGroupPolicy or minTaskMember"),
    ForeignKey("pod-group-name", instead=f"{_OWN_GROUP}; PodGroups of KAI-Scheduler are not read"),
    ForeignKey("kai.scheduler/*", instead="the replacement in docs/migrate.md"),
    ForeignKey(names.COSCHEDULING_GROUP, read="names the gang"),
    ForeignKey("pod-group.scheduling.sigs.k8s.io*", instead=_OWN_GROUP),
)


def rows() -> Iterator[tuple[str, str, str]]:
    """Yield the key, the effect and the replacement of each entry, for the documentation."""
    for each in FOREIGN:
        yield f"`{each.key}`", each.read or "no effect in Muster", each.instead and f"use {each.instead}"


def without_effect(metadata: Mapping[str, Any], path: str, above: Mapping[str, Any]) -> Iterator[str]:
    """Yield a warning for each key of another scheduler that has no effect in this metadata.

    `above` are the labels of the workload that contains the template. These labels matter because Kueue reads its keys
    in a workload with a Kueue queue.
    """
    kueues = names.KUEUE_QUEUE in above or names.KUEUE_QUEUE in _texts(metadata, "labels")
    for place in ("labels", "annotations"):
        for key in _texts(metadata, place):
            entry = next((each for each in FOREIGN if fnmatchcase(key, each.key)), None)
            if entry is None or (kueues and key.startswith(_KUEUE)):
                continue
            if not entry.read or (entry.instead and not _is_plain(metadata, path)):
                yield f"{path}.{place}[{key}]: Muster does not read this {place[:-1]}; use {entry.instead}"


def _is_plain(metadata: Mapping[str, Any], path: str) -> bool:
    """Return True for a pod in a group of plain pods.

    The path distinguishes the metadata of a pod from the metadata of a pod template.
    """
    labels, annotations = _texts(metadata, "labels"), _texts(metadata, "annotations")
    return path == "metadata" and bool(plain_group(ObjectMeta(labels=labels, annotations=annotations)))


def _texts(metadata: Mapping[str, Any], place: str) -> dict[str, str]:
    given = metadata.get(place)
    return {str(key): str(value) for key, value in given.items()} if isinstance(given, Mapping) else {}

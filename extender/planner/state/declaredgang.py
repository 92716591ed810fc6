"""What its owner declares about a gang, in the PodGroup and in annotations and labels of its pods."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from extender.planner.state.pods import ABOUT_GANG, PodRecord, preemptable
from extender.planner.state.podset import PodSetView, counting
from muster.api import names
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.muster.checkpoint import NoticeAnswer, answer_of
from muster.api.muster.creator import counted_user
from muster.api.muster.native import is_native, subject
from muster.api.volcano.scheduling import PodGroup
from muster.resources.runtime import declared_s
from muster.resources.spares import spares_of


@dataclass
class DeclaredGang:
    """The part of a gang's view that its members' progress and its placement do not change."""

    key: str
    group: PodGroup
    priority: int
    pod_sets: list[PodSetView]
    pods: list[PodRecord]

    @cached_property
    def uid(self) -> str:
        """UID of the PodGroup, which distinguishes the gang from earlier gangs with the same name."""
        return self.group.metadata.uid

    @property
    def workload(self) -> str:
        """The gang's name for users: kind and name of its owner (`Job train`), or else the name of its PodGroup."""
        owner = self.group.metadata.controller
        return f"{owner.kind} {owner.name}" if owner else f"gang {subject(self.group).metadata.name}"

    @cached_property
    def queue(self) -> str:
        """Name of the gang's queue; Volcano's default queue if the PodGroup names no queue."""
        return self.group.spec.queue or "default"

    @cached_property
    def creator(self) -> str:
        """The user whose limits apply to the gang, read from the PodGroup's annotation."""
        return counted_user(self.group.metadata.namespace, self.group.metadata.annotations)

    @cached_property
    def created(self) -> str:
        """Creation time of the PodGroup, RFC 3339 (sorts as text)."""
        return self.group.metadata.creation_timestamp or ""

    @property
    def min_member(self) -> int:
        """Number of members that start together or not at all."""
        return self.group.spec.min_member

    @property
    def minimums(self) -> dict[str, int]:
        """Maps a pod set to the number of its members that must start; all are 0 if minMember is below their sum."""
        return counting(self.min_member, {pod_set.name: pod_set.minimum for pod_set in self.pod_sets})

    @cached_property
    def options(self) -> dict[str, str]:
        """Annotations about faults and spare slots, from the PodGroup or else from a pod: the webhook copies them."""
        options = next((pod.about_gang for pod in self.pods if pod.about_gang), {})
        own = self.group.metadata.annotations
        return {**options, **{key: own[key] for key in ABOUT_GANG if key in own}}

    @cached_property
    def spares_asked(self) -> Mapping[str, int]:
        """Maps a pod set ("": the largest) to the number of nodes for which it requests spares; mostly empty."""
        return spares_of(self.options)

    @cached_property
    def scale_up(self) -> dict[str, str]:
        """The gang's own settings for requests to autoscalers."""
        return scale_up_of(self.group.metadata, self.pods[0].labels if self.pods else {})

    @cached_property
    def framework(self) -> str:
        """The framework named by a label of the gang's pods, which numbers the members; empty without the label."""
        return next((label for pod in self.pods if (label := pod.labels.get(names.FRAMEWORK))), "")

    @cached_property
    def preemptable(self) -> bool:
        """True if neither the PodGroup nor any pod forbids evictions in favour of other gangs."""
        return preemptable(self.group.metadata) and all(pod.preemptable for pod in self.pods)

    @cached_property
    def answers(self) -> tuple[NoticeAnswer, ...]:
        """Annotations about eviction and checkpoints on the PodGroup and members with a node, not of earlier runs."""
        answers = [pod.answer for pod in self.pods if pod.answer is not None and pod.uses_node]
        of_group = answer_of(self.group.metadata.annotations)
        return tuple(answers) if of_group is None else (of_group, *answers)

    @property
    def independent(self) -> bool:
        """True if the gang's pods are independent, so that each pod waits and starts on its own."""
        marked = self.group.metadata.annotations.get(names.INDEPENDENT) == "true"
        return marked and self.min_member <= 1 and len(self.pod_sets) <= 1

    @property
    def indivisible(self) -> bool:
        """True if the disruption mode of the native PodGroup allows only evicting all of the gang's pods together."""
        return self.group.metadata.annotations.get(names.INDIVISIBLE) == "true" and is_native(self.group)

    @property
    def declared_s(self) -> float | None:
        """Expected runtime, in seconds, of pods that declare no runtime; None if the PodGroup declares none, either."""
        return declared_s(self.group.metadata.annotations)

    @cached_property
    def pending(self) -> bool:
        """True if the phase of the PodGroup does not yet permit the creation of the gang's pods."""
        return self.group.status.phase in {"", "Pending"}


def scale_up_of(meta: ObjectMeta, labels: Mapping[str, str]) -> dict[str, str]:
    """Return the settings for autoscalers in a PodGroup's annotations and labels and in its pods' labels."""
    found = {key: meta.annotations[key] for key in names.SCALE_UP_KEYS if key in meta.annotations}
    for known in (meta.labels, labels):
        if names.SCALE_UP in known:
            found.setdefault(names.SCALE_UP, known[names.SCALE_UP])
    return found

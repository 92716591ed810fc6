"""Which gangs others may displace."""

from extender.planner.state.gangs import GangView


def preemptible(gang: GangView, bound: int | None = None) -> bool:
    """Whether the gang may be evicted to make room for others; most may.

    One may not if its PodGroup or one of its pods says `volcano.sh/preemptable: "false"`, as a label or an annotation.
    With a `bound`, as KAI-Scheduler has it, neither may one whose priority reaches it.
    """
    return gang.preemptable and (bound is None or gang.priority < bound)

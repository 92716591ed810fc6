"""How many members are enough: Volcano's rule, in one place. Pure."""

from collections.abc import Mapping

from muster.api.muster.placement import StartedWith


def enough(counts: Mapping[str, int], least: int, minimums: dict[str, int]) -> bool:
    """Whether so many members per pod set reach both the minimum of all together and those per pod set that count."""
    return sum(counts.values()) >= least and all(
        counts.get(name, 0) >= minimum for name, minimum in counting(least, minimums).items()
    )


def counting(least: int, minimums: dict[str, int]) -> dict[str, int]:
    """The minimums per pod set as far as they count, which is if `least`, that of all together, covers their sum."""
    return minimums if least >= sum(minimums.values()) else dict.fromkeys(minimums, 0)


def lower(today: StartedWith, known: StartedWith) -> StartedWith:
    """The lower of the two for every pod set that there is today."""
    tasks = {name: min(least, known.min_task_member.get(name, 0)) for name, least in today.min_task_member.items()}
    return StartedWith(min_member=min(today.min_member, known.min_member), min_task_member=tasks)

"""Members of a Volcano Job that have succeeded, as recorded in the Job's status.

If a node is deleted, its succeeded pods are deleted too. Without the record, the Job would create the deleted pods
again. The record is in `status.controlledResources`, Volcano's free-form map, so it also works with Volcano's own CRD.
The record is valid for one version of the Job. Without a valid record, only existing pods count as succeeded.
"""

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from muster.api.limits import PODS
from muster.api.muster.gang import Slot
from muster.api.ranges import as_ranges, numbers
from muster.api.volcano.batch import Job

SUCCEEDED = "muster.dev/succeeded"
"""Key of the record in `status.controlledResources`."""


class _Note(msgspec.Struct):
    version: int
    """Version of the Job for which the record is valid."""
    tasks: dict[str, str]
    """Maps a task to the indexes of its succeeded pods, such as `0-2,5`."""


def done_slots(job: Job) -> frozenset[Slot]:
    """Return the slots that are recorded as done; empty if the record is unreadable or for another Job version."""
    text = job.status.controlled_resources.get(SUCCEEDED)
    if not text:
        return frozenset()
    try:
        note = msgspec.json.decode(text, type=_Note)
    except msgspec.DecodeError:
        return frozenset()
    tasks = job.spec.tasks if note.version == job.status.version else []
    return frozenset(
        Slot(task.name, rank)
        for task in tasks
        for rank in numbers(note.tasks.get(task.name, ""), min(task.replicas, PODS.value))
    )


def note_of(done: Iterable[Slot], version: int) -> str:
    """Return the record that these slots are done in this version of the Job; "" without slots."""
    ranks: dict[str, list[int]] = defaultdict(list)
    for slot in done:
        ranks[slot.pod_set].append(slot.rank)
    tasks = {name: as_ranges(ranks[name]) for name in sorted(ranks)}
    return msgspec.json.encode(_Note(version, tasks)).decode() if tasks else ""

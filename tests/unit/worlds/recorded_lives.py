"""Objects of gangs as a recorder of the history sees them change, from their submission to their end."""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from msgspec import convert

from history.entries import Entries
from history.groups import RecordedJob
from history.observations import Observation, apply
from history.pods import ObservationTime, RecordedPod
from muster.api.kubernetes.meta import Object, format_time
from muster.api.muster.placement import Placement
from muster.api.volcano.scheduling import PodGroup

GPU: Final = "nvidia.com/gpu"
T: Final = 1_800_000_000
TYPES: Final[dict[str, type[Object]]] = {
    "jobs": RecordedJob, "podgroups": PodGroup, "placements": Placement, "pods": RecordedPod
}  # fmt: skip


class Whose(NamedTuple):
    """Whose a gang is, what it asks for and where it runs: nothing of two gangs may be mixed up."""

    uid: str = ""
    """Begins the UIDs of its objects."""
    namespace: str = "team"
    job: str = "train"
    queue: str = "research"
    user: str = "eve"
    rack: str = ""
    """Begins the names of its nodes."""
    asks: tuple[tuple[str, str], ...] = ((GPU, "1"),)
    """Resource and quantity of each member."""
    gang: str = "gang"
    """Name of its PodGroup and Placement."""
    submitted: int = T
    """The second from which its times count."""

    @property
    def owner(self) -> str:
        """UID of its Volcano Job."""
        return f"{self.uid}job-uid"

    @property
    def group(self) -> str:
        """UID of its PodGroup."""
        return f"{self.uid}group-uid"

    @property
    def pod(self) -> str:
        """UID of its first pod."""
        return f"{self.uid}pod-uid"

    @property
    def member(self) -> str:
        """Name of its pod, in each epoch the same."""
        return f"{self.job}-worker-0"

    def at(self, second: float) -> str:
        """The text of a time, which counts from the submission."""
        return format_time(self.submitted + second)


EVE: Final = Whose()
BOB: Final = Whose("b-", "other", queue="product", user="bob", rack="b-", asks=(("cpu", "500m"), (GPU, "2")))


class Lives:
    """Objects as they change, and the looks that a recorder takes of them, in the order of their times."""

    def __init__(self) -> None:
        self._changes: list[tuple[float, str, str, dict[str, Any], Whose, bool]] = []

    def look(
        self, kind: str, uid: str, second: float, content: dict[str, Any], whose: Whose = EVE, *, gone: bool = False
    ) -> None:
        """A change, at a time that counts from the submission."""
        self._changes.append((whose.submitted + second, kind, uid, content, whose, gone))

    @property
    def looks(self) -> list[Observation]:
        """All of them; resource versions grow from one to the next."""
        found = []
        for version, (second, kind, uid, content, whose, gone) in enumerate(
            sorted(self._changes, key=lambda each: each[0]), start=101
        ):
            meta = {"uid": uid, "namespace": whose.namespace, "resourceVersion": str(version)}
            meta |= {"name": uid, "creationTimestamp": whose.at(0), **content.get("metadata", {})}
            new = convert({**content, "metadata": meta}, TYPES[kind])
            moment = ObservationTime(round(second * 1000), live=True)
            found.append(Observation(kind, uid, None if gone else new, gone, moment, whose.namespace))
        return found


def pod(
    second: float, phase: str = "Running", name: str = "", epoch: int = 1, whose: Whose = EVE, **more: Any
) -> dict[str, Any]:
    """A member that was bound at a time."""
    conditions = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": whose.at(int(second))}]
    state: dict[str, Any] = {"running": {"startedAt": whose.at(int(second) + 1)}}
    if phase in {"Succeeded", "Failed"}:
        ended = whose.at(int(more.pop("ended")))
        code = int(phase == "Failed")
        state = {"terminated": {"exitCode": code, "startedAt": whose.at(int(second) + 1), "finishedAt": ended}}
    if more.pop("evicted", False):
        conditions.append({"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"})
    return {
        "metadata": {
            "name": name or whose.member,
            "labels": {"muster.dev/gang": whose.gang},
            "annotations": {"muster.dev/epoch": str(epoch), **more.pop("annotations", {})},
        },
        "spec": {
            "nodeName": f"{whose.rack}node-{epoch}",
            "schedulerName": "muster",
            "containers": [{"name": "main", "resources": {"requests": dict(whose.asks)}}],
        },
        "status": {"phase": phase, "conditions": conditions, "containerStatuses": [{"name": "main", "state": state}]},
    }


def group(phase: str = "Pending", *conditions: dict[str, Any], whose: Whose = EVE) -> dict[str, Any]:
    """The PodGroup of a Volcano Job."""
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": whose.job, "uid": whose.owner}
    least = {name: amount for each, amount in whose.asks for name in (each, f"requests.{each}")}
    return {
        "metadata": {
            "name": whose.gang,
            "ownerReferences": [{**owner, "controller": True}],
            "annotations": {"muster.dev/created-by": whose.user},
        },
        "spec": {"minMember": 1, "queue": whose.queue, "minResources": least},
        "status": {"phase": phase, "conditions": list(conditions)},
    }


def waits(reason: str, message: str, second: float, whose: Whose = EVE) -> dict[str, Any]:
    """The condition of a gang that waits."""
    told = {"reason": reason, "message": message, "lastTransitionTime": whose.at(second)}
    return {"type": "Unschedulable", "status": "True", **told}


def placement(epoch: int, phase: str = "Bound", started: float | None = None, whose: Whose = EVE) -> dict[str, Any]:
    """A placement of one member."""
    runs = [{"name": "worker", "runs": [{"node": f"{whose.rack}node-{epoch}"}]}]
    status: dict[str, Any] = {"phase": phase}
    if started is not None:
        status |= {"started": True, "startedAt": whose.at(started)}
    return {
        "metadata": {"name": whose.gang},
        "spec": {"podGroupUID": whose.group, "epoch": epoch, "podSets": runs},
        "status": status,
    }


def job(phase: str, second: float, retries: int = 0, whose: Whose = EVE) -> dict[str, Any]:
    """A Volcano Job."""
    state = {"phase": phase, "lastTransitionTime": whose.at(second), "message": "as it says"}
    return {"metadata": {"name": whose.job}, "status": {"state": state, "retryCount": retries}}


def life(w: Lives, whose: Whose = EVE) -> None:
    """A gang that waits, starts, is evicted, starts again and completes."""
    saved = {"muster.dev/checkpoint": f"at={whose.at(8)}"}
    again = f"{whose.uid}pod-2-uid"
    evicted = waits("Evicted", "for gang big of queue product", 15, whose)

    def look(kind: str, uid: str, second: float, content: dict[str, Any], *, gone: bool = False) -> None:
        w.look(kind, uid, second, content, whose, gone=gone)

    look("jobs", whose.owner, 0.1, job("Pending", 0, whose=whose))
    look("podgroups", whose.group, 0.2, group(whose=whose))
    no_room = waits("NoRoom", "no room for 1 pod", 1, whose)
    look("podgroups", whose.group, 1.2, group("Pending", no_room, whose=whose))
    look("placements", f"{whose.uid}placement", 5.0, placement(1, "Planned", whose=whose))
    look("pods", whose.pod, 5.4, pod(5.4, whose=whose))
    look("placements", f"{whose.uid}placement", 5.5, placement(1, started=6, whose=whose))
    look("podgroups", whose.group, 5.6, group("Running", whose=whose))
    look("pods", whose.pod, 9.0, pod(5.4, annotations=saved, whose=whose))
    look("pods", whose.pod, 15.2, pod(5.4, evicted=True, whose=whose))
    look("podgroups", whose.group, 15.3, group("Pending", evicted, whose=whose))
    look("jobs", whose.owner, 15.3, job("Restarting", 15, retries=1, whose=whose))
    look("pods", whose.pod, 15.4, {}, gone=True)
    look("placements", f"{whose.uid}placement", 20.0, placement(2, "Planned", whose=whose))
    look("pods", again, 20.2, pod(20.2, epoch=2, whose=whose))
    look("placements", f"{whose.uid}placement", 20.3, placement(2, started=21, whose=whose))
    look("jobs", whose.owner, 20.4, job("Running", 20, retries=1, whose=whose))
    look("pods", again, 30.5, pod(20.2, "Succeeded", ended=30.5, epoch=2, whose=whose))
    look("jobs", whose.owner, 30.6, job("Completed", 30, retries=1, whose=whose))
    look("podgroups", whose.group, 30.7, {}, gone=True)
    look("jobs", whose.owner, 40.0, {}, gone=True)


def entered(looks: Iterable[Observation], entries: Entries | None = None) -> Entries:
    """The entries after these looks."""
    entries = entries or Entries()
    for look in looks:
        apply(entries, look)
    return entries

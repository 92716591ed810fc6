"""What rows say of an eviction that is announced: to the gang that leaves, and to the one that waits for it."""

from typing import Any

import msgspec
import pytest
from builders import manifests, pod_group
from builders import pod as a_pod

from gangs.row import GangRow
from gangs.rows import RowSources, rows
from muster.api import names
from muster.api.kubernetes.core import Pod
from muster.api.muster.placement import Placement, PlacementStatus
from muster.api.muster.reason import Reason
from muster.api.volcano.scheduling import PodGroup

UNTIL = "2026-11-30T14:57:10Z"


def group(name: str, phase: str) -> PodGroup:
    """The gang of a Job of its name."""
    owner = manifests.owner(name, "Job", "batch/v1", name)
    return pod_group(name, 1, queue="research", phase=phase, uid=name, owner=owner)


def pod(gang: str, phase: str = "Running", node: str = "node-0", **annotations: str) -> Pod:
    """The pod of a gang."""
    made = a_pod(f"{gang}-0", node=node, phase=phase, gang=gang)
    return msgspec.structs.replace(
        made, metadata=msgspec.structs.replace(made.metadata, annotations={**made.metadata.annotations, **annotations})
    )


def placed(
    *notices: dict[str, Any], code: str = "eviction-reclaimed", victims: tuple[str, ...] = ("low",)
) -> Placement:
    """The placement of the gang `urgent` on the node of its victims."""
    why = Reason(code=code, params={"queue": "research"})
    spec = {
        "podGroupUID": "urgent", "victims": [{"name": f"{each}-0", "uid": "1", "gang": each} for each in victims],
        "podSets": [{"name": "pods", "runs": [{"node": "node-0"}], "held": True}], "notices": list(notices),
        "victimsReason": "reclaimed by queue research", "victimsWhy": msgspec.to_builtins(why),
    }  # fmt: skip
    return msgspec.convert({"metadata": {"name": "urgent", "namespace": "ns"}, "spec": spec}, Placement)


def by_name(**objects: Any) -> dict[str, GangRow]:
    """The rows by the names of the gangs."""
    return {row.gang: row for row in rows(RowSources(**objects))}


NOTICE = {"gang": "low", "toldAt": "2026-11-30T14:52:10Z", "evictAt": UNTIL}
GROUPS = [group("low", "Running"), group("urgent", "Inqueue")]


def test_a_victim_reads_when_it_leaves_for_whom_and_why() -> None:
    """And the gang that gets its nodes, whom it waits for and until when."""
    found = by_name(groups=GROUPS, pods=[pod("low"), pod("urgent", "Pending", "")], placements=[placed(NOTICE)])
    assert found["low"].reason == "leaves at 14:57:10Z for Job urgent (reclaim)"
    assert (
        found["low"].message
        == f"the gang will be evicted at {UNTIL}, or as soon as it has answered, for Job urgent (reclaim)"
    )
    assert found["urgent"].state == "Starting"
    assert found["urgent"].reason == "waits until Job low leaves, at 14:57:10Z at the latest"
    assert (
        found["urgent"].message
        == f"the gang has its nodes, and waits until Job low leaves them, at {UNTIL} at the latest"
    )


def test_without_the_placement_the_queue_is_named() -> None:
    """Its members have the notice, and the queue that gets their nodes."""
    told = pod("low", **{names.EVICT_AT: UNTIL, names.EVICT_FOR: "research"})
    assert by_name(groups=GROUPS[:1], pods=[told])["low"].reason == "leaves at 14:57:10Z for queue research"


def test_who_goes_without_a_notice_is_only_waited_for() -> None:
    """It is evicted at once."""
    found = by_name(groups=GROUPS, pods=[pod("low"), pod("urgent", "Pending", "")], placements=[placed()])
    assert (found["low"].reason, found["urgent"].reason) == ("", "waits until Job low leaves")


@pytest.mark.parametrize("victims", [(), ("urgent",)], ids=["none are left", "it is moved"])
def test_a_gang_that_waits_for_nobody_else(victims: tuple[str, ...]) -> None:
    """Its row is as ever."""
    found = by_name(
        groups=GROUPS, pods=[pod("low"), pod("urgent", "Pending", "")], placements=[placed(victims=victims)]
    )
    assert "leaves" not in found["low"].reason + found["urgent"].reason


def test_a_gang_that_waits_after_its_eviction_names_who_displaced_it() -> None:
    """In the sentence, unless it names the eviction already; not once it runs again."""
    by = msgspec.structs.replace(placed(victims=()), status=PlacementStatus(made_room=["ns/low"]))
    found = by_name(groups=[group("low", "Inqueue"), GROUPS[1]], pods=[], placements=[by])
    assert (
        found["low"].message
        == "the gang's pods were evicted for Job ns/urgent; the planner has not processed the gang yet"
    )
    assert "evicted" not in by_name(groups=GROUPS, pods=[pod("low")], placements=[by])["low"].message

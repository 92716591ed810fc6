"""By which placement the pods of a Job are born pinned."""

from typing import Any, cast

import pytest
from msgspec import structs
from simulated_cluster import Cluster
from simulated_jobs import add, pods, task, turn

from controller.job.expectations import Expectations
from controller.job.objects import Groups
from muster.api import names
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.muster.placement import Placement, PlacementSpec, PlacementStatus
from muster.api.muster.placementnotes import PlacementContent
from muster.api.volcano.scheduling import POD_GROUPS, PodGroup, PodGroupStatus
from muster.kube.errors import NotFound
from muster.kube.store import ObjectStore


class Api:
    """Has one placement as an object, or none, and counts how often it is asked."""

    def __init__(self, found: Placement | None = None) -> None:
        self.found, self.asked = found, 0

    def get(self, *_: object) -> Placement:
        """As the API server."""
        self.asked += 1
        if self.found is None:
            raise NotFound("there is none")
        return self.found


def groups(api: Api) -> Groups:
    """With nothing in any cache."""
    return Groups(cast("Any", api), ObjectStore[PodGroup](), ObjectStore(), list, Expectations(lambda: 0.0))


def group(phase: str = "", uid: str = "u") -> PodGroup:
    """One with UID `u`, and a placement noted for that of another UID, if so."""
    said = PlacementContent(spec=PlacementSpec(pod_group_uid=uid, epoch=3), status=PlacementStatus(phase=phase))
    note = {"muster.dev/placement": said.as_note()} if phase else {}
    return PodGroup(metadata=ObjectMeta(name="g", namespace="n", uid="u", annotations=note))


def test_what_is_noted_is_not_asked_for() -> None:
    """It came with the PodGroup that lets the pod begin."""
    api = Api()
    found = groups(api).placement(group("Planned"))
    assert found is not None
    assert (found.spec.epoch, api.asked) == (3, 0)


def test_an_object_is_asked_for_where_the_note_is_over_or_not_the_gangs() -> None:
    """A note that was carried out pins nobody."""
    made = Placement(spec=PlacementSpec(pod_group_uid="u", epoch=4), status=PlacementStatus(phase="Planned"))
    for one in (group(), group("Bound"), group("Planned", uid="another")):
        api = Api(made)
        assert groups(api).placement(one) is made
        assert api.asked == 1
    assert groups(Api()).placement(group("Bound")) is None


@pytest.mark.parametrize(("phase", "placed", "uid", "may"), [
    ("Pending", "", "u", False), ("", "", "u", False), ("Inqueue", "", "u", True), ("Running", "Bound", "u", True),
    ("Pending", "Planned", "u", True), ("", "Binding", "u", True),
    ("Pending", "Reserved", "u", False), ("Pending", "Abandoned", "u", False), ("Pending", "Planned", "another", False),
])  # fmt: skip
def test_pods_are_created_once_the_gang_has_its_nodes(phase: str, placed: Any, uid: str, *, may: bool) -> None:
    """The PodGroup's phase follows the placement; a placement of an earlier PodGroup does not count."""
    cached = ObjectStore[Placement]()
    if placed:
        meta = ObjectMeta(name="g", namespace="n", uid="p", resource_version="1")
        spec, status = PlacementSpec(pod_group_uid=uid, epoch=1), PlacementStatus(phase=placed)
        cached.add_object(Placement(metadata=meta, spec=spec, status=status))
    known = Groups(cast("Any", Api()), ObjectStore[PodGroup](), cached, list, Expectations(lambda: 0.0))
    made = structs.replace(group(), status=PodGroupStatus(phase=phase))
    assert known.admitted(made) is may


def test_a_placement_starts_the_creation_of_pods(cluster: Cluster) -> None:
    """The pass does not wait for the write of the phase, which follows the placement."""
    add(cluster, "j", task("w", 2))
    for _ in range(3):  # also the pass after the PodGroup is there
        turn(cluster)
    [made] = cluster.api.all(POD_GROUPS)
    assert not pods(cluster)
    cluster._place(made)
    turn(cluster)
    assert [each.spec.node_name for each in pods(cluster)] == ["", ""]
    assert all(each.metadata.annotations[names.NODE] == "node-1" for each in pods(cluster))
    assert cluster.api.all(POD_GROUPS)[0].status.phase == "Pending"

"""By which placement the pods of a Job are born pinned."""

from typing import Any, cast

from controller.job.expectations import Expectations
from controller.job.objects import Groups
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.muster.placement import Placement, PlacementSpec, PlacementStatus
from muster.api.muster.placementnotes import PlacementContent
from muster.api.volcano.scheduling import PodGroup
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
    return Groups(cast("Any", api), ObjectStore[PodGroup](), list, Expectations(lambda: 0.0))


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

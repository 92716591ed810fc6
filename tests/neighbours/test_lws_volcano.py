"""LeaderWorkerSets whose own controller makes Volcano's PodGroups, which Muster takes as they are."""

from collections.abc import Callable

import pytest
from beside import lws
from beside.lws import SETS, worker_set
from beside.neighbour import Neighbours
from beside.scene import Scene

from muster.api import names
from muster.api.volcano.scheduling import POD_GROUPS
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.neighbour
VERBS = "create,get,list,watch"
"""On PodGroups, as the project's chart grants them where this is configured; its other manifests do not."""
VOLCANO = {"schedulerName": names.VOLCANO_SCHEDULER}


@pytest.fixture(scope="module")
def plane(module_plane: Callable[..., Plane], neighbours: Neighbours) -> Plane:
    """Six nodes, and LeaderWorkerSet as it is configured for Volcano."""
    one = module_plane(nodes=6)
    what = f"--resource={POD_GROUPS.plural}.{POD_GROUPS.group}"
    one.kubectl("create", "clusterrole", "lws-podgroups", f"--verb={VERBS}", what)
    account = "--serviceaccount=lws-system:lws-controller-manager"
    one.kubectl("create", "clusterrolebinding", "lws-podgroups", "--clusterrole=lws-podgroups", account)
    lws.start(neighbours, one, gangSchedulingManagement={"schedulerProvider": "volcano"})
    return one


def test_groups_as_for_volcano(scene: Scene) -> None:
    """Without any label of Muster's: each group is the gang that its PodGroup says, and waits or starts whole."""
    scene.create(SETS, worker_set("serve", groups=2, size=4, labels={}, pods=VOLCANO))
    scene.wait_for(lambda: len(scene.pods()) == 8, 60, "all pods are made")
    scene.wait_for(lambda: len(scene.reasons()) == 1, 60, "one group to wait")
    scene.wait_for(lambda: sum(pod.status.phase == "Running" for pod in scene.pods()) == 4, 60, "the other to run")
    groups = scene.groups()
    assert {group.spec.min_member for group in groups.values()} == {4}
    assert {name.rpartition("-")[0] for name in groups} == {"serve-0", "serve-1"}
    scene.patch(SETS, "serve", replicas=1)
    scene.running(4)


def test_a_leader_that_must_be_ready(scene: Scene) -> None:
    """LeaderReady: the controller's own PodGroup asks for one member, so the workers may come later."""
    scene.create(SETS, worker_set("serve", groups=1, size=4, labels={}, pods=VOLCANO, startupPolicy="LeaderReady"))
    scene.running(4)
    [group] = scene.groups().values()
    assert group.spec.min_member == 1


def test_a_framework_beside_it(scene: Scene) -> None:
    """With the label for torch the pods are shaped, in the gang that the controller has made."""
    scene.create(SETS, worker_set("train", groups=1, size=3, labels={names.FRAMEWORK: "torch"}, pods=VOLCANO))
    assert {scene.env(pod)["PET_NODE_RANK"] for pod in scene.running(3)} == {"0", "1", "2"}
    assert len(scene.groups()) == 1

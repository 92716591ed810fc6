"""Gangs that are published as Kubernetes' own PodGroups."""

import json
from typing import Any

import pytest
from guarded_api import GuardedApi
from msgspec import convert, structs, to_builtins

import controller
from controller.caches import SharedCaches
from controller.gangs.native import NativeGroupWorker
from controller.kit import Kit
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.kubernetes.scheduling import NATIVE_POD_GROUPS, NativePodGroup
from muster.api.volcano.scheduling import PodGroup, PodGroupSpec, PodGroupStatus
from muster.kube.errors import Forbidden, NotFound
from muster.volcano.native import is_gang, native_of
from muster.volcano.pods import in_native_group


class Cluster(GuardedApi):
    """An API server that may not serve native PodGroups."""

    def __init__(self) -> None:
        super().__init__(controller)
        self.served, self.asked = True, 0

    def request(self, _method: str, path: str, **_: Any) -> bytes:
        """The kinds of the group."""
        assert path == "/apis/scheduling.k8s.io/v1beta1"
        self.asked += 1
        if not self.served:
            raise NotFound(path)
        return json.dumps({"resources": [{"name": "workloads"}, {"name": "podgroups"}]}).encode()

    @property
    def groups(self) -> dict[str, NativePodGroup]:
        """The native PodGroups by name."""
        return {each.metadata.name: each for each in self.all(NATIVE_POD_GROUPS)}

    def count(self, verb: str) -> int:
        """The number of writes of this verb."""
        return sum(each.site.endswith(f" {verb}") for each in self.sent)


def gang(name: str = "g", least: int = 4, phase: Any = "Inqueue", **spec: Any) -> PodGroup:
    """A PodGroup of Muster's."""
    metadata = ObjectMeta(name=name, namespace="n", uid=f"uid-{name}")
    status = PodGroupStatus(phase=phase)
    return PodGroup(metadata=metadata, spec=PodGroupSpec(min_member=least, **spec), status=status)


class World:
    """The worker with a cluster and a clock of its own."""

    def __init__(self, *gangs: PodGroup) -> None:
        self.cluster = Cluster()
        self.now_s = 0.0
        client: Any = self.cluster
        nobody: Any = None
        caches = SharedCaches(client)
        self.groups, self.natives, self.pods = caches.groups.store, caches.natives.store, caches.pods.store
        self.native = NativeGroupWorker(Kit(client, nobody, lambda: self.now_s, lambda: 0.0), caches)
        for each in gangs:
            self.groups.add_object(each)
        self.native.replay()

    def show(self, new: PodGroup) -> None:
        """The cache shows a PodGroup."""
        old = self.groups.get(new.metadata.key)
        self.groups.add_object(new)
        self.native._group_seen(old, new)

    def work(self) -> None:
        """Does all that is due."""
        queue = self.native.worker.queue
        while (key := queue.get(0)) is not None:
            assert self.native.worker.once(key) == "done"


def test_a_gang_is_published_whole_and_belongs_to_its_podgroup() -> None:
    """With its minimum and priority; preemption ends all or none, and the PodGroup takes it along when it goes."""
    native = native_of(gang(least=3, priority_class_name="high"))
    assert to_builtins(native.spec) == {
        "schedulingPolicy": {"gang": {"minCount": 3}},
        "disruptionMode": {"all": {}},
        "priorityClassName": "high",
    }
    (owner,) = native.metadata.owner_references
    assert (owner.kind, owner.name, owner.uid) == ("PodGroup", "g", "uid-g")
    assert owner.api_version == "scheduling.volcano.sh/v1beta1"


@pytest.mark.parametrize(("of", "yes"), [(gang(), True), (gang(least=1), False), (gang(phase="Completed"), False)])
def test_what_is_published(of: PodGroup, *, yes: bool) -> None:
    """What starts together and has not ended."""
    assert is_gang(of) == yes


def test_gangs_are_published_when_they_come_and_follow_their_minimum() -> None:
    """The minimum is the one field that may change; that the gang has had its nodes is told once."""
    world = World(gang("there"))
    world.work()
    world.show(gang("new"))
    world.show(gang("lone", least=1))
    world.work()
    assert set(world.cluster.groups) == {"there", "new"}
    world.show(gang("new", least=2))
    world.work()
    policy = world.cluster.groups["new"].spec.scheduling_policy
    assert policy.gang
    assert policy.gang.min_count == 2
    before = world.cluster.count("merge_patch")
    world.show(gang("new", least=2, phase="Running"))
    world.work()
    (condition,) = world.cluster.groups["new"].status.conditions
    assert (condition.type, condition.status) == ("PodGroupInitiallyScheduled", "True")
    world.show(gang("new", least=2, phase="Unknown"))
    world.show(gang("new", least=2, phase="Running"))
    world.work()
    assert world.cluster.count("merge_patch") == before + 1
    world.native._group_seen(gang("new"), gang("new", queue="other"))
    world.native._group_seen(gang("new"), None)
    world.native._group_seen(None, gang("lone", least=1))
    assert world.native.worker.queue.get(0) is None, "nothing that is published has changed"


def test_a_gang_that_comes_while_all_are_listed_is_published(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its change is seen before the list has ended, which does not have it."""
    world = World(gang("there"))
    there = world.groups.list()

    def listed() -> list[PodGroup]:
        world.show(gang("new"))
        return there

    monkeypatch.setattr(world.groups, "list", listed)
    world.work()
    assert set(world.cluster.groups) == {"there", "new"}


def test_nothing_is_written_while_the_kind_is_not_served_and_all_is_when_it_is() -> None:
    """The gate may be switched on while gangs run: one question a minute tells."""
    world = World(gang("there"))
    world.cluster.served = False
    for _ in range(5):
        world.work()
        world.show(gang("new"))
        assert not world.native.joins(gang())
    assert (world.cluster.count("create"), world.cluster.asked) == (0, 1)
    world.cluster.served = True
    world.now_s += 60.0
    world.work()
    assert set(world.cluster.groups) == {"there", "new"}
    assert world.native.joins(gang())
    assert not world.native.joins(gang(least=1))


def test_what_was_published_and_is_gone_is_published_again() -> None:
    """Who deletes it has not deleted the gang; other groups that go are nothing to it."""
    world = World(gang())
    world.work()
    published = world.cluster.groups["g"]
    world.cluster.remove(NATIVE_POD_GROUPS, published)
    world.native._native_seen(published, None)
    world.work()
    assert set(world.cluster.groups) == {"g"}
    before = world.cluster.count("create")
    world.native._native_seen(structs.replace(published, metadata=ObjectMeta(name="g", namespace="n", uid="x")), None)
    world.work()
    assert world.cluster.count("create") == before


def test_what_somebody_else_has_under_the_name_stays() -> None:
    """A PodGroup of a user, or one of an earlier gang that goes when its pods are gone."""
    world = World()
    foreign = structs.replace(native_of(gang()), metadata=ObjectMeta(name="g", namespace="n", uid="x"))
    world.cluster.keep(NATIVE_POD_GROUPS, foreign)
    world.work()
    world.show(gang(least=2))
    world.work()
    assert world.cluster.groups["g"] is foreign


@pytest.mark.parametrize(("named", "yes"), [("podgroup-u", True), ("train", False)])
def test_a_gang_whose_pods_name_another_group_is_not_published_twice(named: str, *, yes: bool) -> None:
    """Kubernetes makes a PodGroup for each Job where the gate WorkloadWithJob is on, before there are pods."""
    world = World()
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u", "controller": True}
    metadata = {"name": "train-0", "namespace": "n", "uid": "p", "ownerReferences": [owner]}
    spec = {"schedulerName": "muster", "schedulingGroup": {"podGroupName": named}}
    world.pods.add_object(convert({"metadata": metadata, "spec": spec}, Pod))
    world.groups.add_object(gang("podgroup-u"))
    world.work()
    assert (list(world.cluster.groups) == ["podgroup-u"]) == yes


def test_a_refusal_is_tried_again_after_a_while() -> None:
    """Not at once and for ever: what is missing has to be made by somebody."""
    world = World(gang(priority_class_name="high"))
    world.cluster.fails(Forbidden("no PriorityClass with name high was found"), "create")
    world.work()
    world.work()
    assert world.cluster.count("create") == 1
    world.now_s += 300.0
    world.work()
    assert set(world.cluster.groups) == {"g"}


def test_pods_of_a_volcano_job_name_the_group() -> None:
    """Unless their template names another one, or has what a member must not have."""
    assert in_native_group({"spec": {}}, "g")["spec"] == {"schedulingGroup": {"podGroupName": "g"}}
    other = {"schedulingGroup": {"podGroupName": "mine"}}
    assert in_native_group({"spec": dict(other)}, "g")["spec"] == other
    assert "schedulingGroup" not in in_native_group({"spec": {"evictionResponders": [{}]}}, "g")["spec"]

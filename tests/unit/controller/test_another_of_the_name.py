"""What is about one object is not done to another one that has its name by now."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from builders import manifests
from guarded_controller import Desk
from msgspec import structs
from simulated_cluster import Cluster, _tell
from simulated_jobs import job, order, submit, turn

from controller.gangs.native import NativeGroupWorker
from controller.job.objects import JobObjects, ObjectError
from controller.job.rules.events import UNKNOWN, JobEvent
from controller.live import controller_of
from controller.trainjob.children import ChildSteps
from controller.trainjob.rules import steps
from controller.worker import Retry
from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.kubernetes.core import CONFIG_MAPS, INDEXED_JOBS, PODS
from muster.api.kubernetes.meta import ObjectMeta, OwnerReference
from muster.api.kubernetes.scheduling import NATIVE_POD_GROUPS
from muster.api.muster.placement import PLACEMENTS
from muster.api.volcano.batch import COMMANDS, JOBS, Job
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.errors import NotFound, ServerError
from muster.runtime.plan import Component
from muster.volcano.native import native_of
from muster.volcano.plugins.base import Owned
from muster.volcano.podgroup import pod_group
from muster.volcano.tasks import reference


def commands_are_told(cluster: Cluster) -> None:
    """The cache of Commands is told of everything; the others are behind."""
    name, reflector = next(
        (name, each) for name, each in cluster.controller.reflectors.items() if each._resource is COMMANDS
    )
    changes = cluster.api.changes(COMMANDS)
    for change in changes[cluster.cursors[name] :]:
        _tell(reflector, change)
    cluster.cursors[name] = len(changes)


def made_again(cluster: Cluster, earlier: Job) -> Job:
    """The Job is gone, and another one has its name."""
    cluster.api.remove(JOBS, job(cluster, "j"), at_once=True)
    cluster.api.collect()
    made: Job = cluster.api.add(JOBS, {"metadata": {"name": "j"}, "spec": {"tasks": [], "minAvailable": 0}}, "n")
    assert made.metadata.uid != earlier.metadata.uid
    return made


def test_a_command_for_an_earlier_job_is_dropped(cluster: Cluster) -> None:
    """The one that has the name now runs on."""
    earlier = submit(cluster, "j", 2)
    cluster.api.remove(JOBS, job(cluster, "j"), at_once=True)
    assert cluster.converge()
    submit(cluster, "j", 2)
    order(cluster, "AbortJob", earlier)
    assert cluster.converge()
    assert (job(cluster, "j").status.state.phase, cluster.api.all(COMMANDS)) == ("Running", [])


def test_a_command_for_a_job_that_is_not_known_yet_waits_for_it(cluster: Cluster) -> None:
    """The cache has the earlier one still, which is not aborted in its place; nor is the Command dropped."""
    order(cluster, "AbortJob", made_again(cluster, submit(cluster, "j", 2)))
    commands_are_told(cluster)
    cluster.work(5)
    assert len(cluster.api.all(COMMANDS)) == 1
    turn(cluster, times=3, pause_s=5.0)
    assert cluster.converge()
    assert (job(cluster, "j").status.state.phase, cluster.api.all(COMMANDS)) == ("Aborted", [])


@pytest.mark.parametrize("current", [False, True])
def test_the_loss_of_an_earlier_gang_is_no_news(cluster: Cluster, *, current: bool) -> None:
    """Its PodGroup was deleted, as the Job has restarted since."""
    submit(cluster, "j", 2, {"events": ["Unknown"], "action": "AbortJob"})
    (group,) = cluster.api.all(POD_GROUPS)
    uid = group.metadata.uid if current else "another"
    cluster.controller.jobs._pending_events.put("n/j", JobEvent(event=UNKNOWN, group_uid=uid))
    cluster.controller.workers[0].queue.add("n/j")
    cluster.work(1)
    assert job(cluster, "j").status.state.phase == ("Aborting" if current else "Running")


def test_the_controller_of_an_object_is_the_one_with_its_uid(cluster: Cluster) -> None:
    """Its pods are those of an earlier Job, and go with that."""
    made = cluster.api.add(INDEXED_JOBS, {"metadata": {"name": "b"}}, "n")

    def owned(uid: str) -> ObjectMeta:
        owner = OwnerReference(api_version="batch/v1", kind="Job", name="b", uid=uid, controller=True)
        return ObjectMeta(name="p", namespace="n", owner_references=[owner])

    client = cast("Any", cluster.api)
    assert controller_of(client, owned(made.metadata.uid), INDEXED_JOBS) == made
    assert controller_of(client, owned("earlier"), INDEXED_JOBS) is None
    assert controller_of(client, ObjectMeta(name="p", namespace="n"), INDEXED_JOBS) is None


@pytest.fixture
def desk() -> Desk:
    """One."""
    return Desk()


@pytest.fixture
def earlier(desk: Desk) -> Job:
    """A Job that has had the name of the present one."""
    found = desk.job
    desk.api.remove(JOBS, found)
    desk.job = desk.add_job()
    return found


def test_the_podgroup_of_an_earlier_job_is_not_this_one_s(desk: Desk, earlier: Job) -> None:
    """It is neither found nor changed nor deleted: this one waits until it has gone."""
    made = desk.api.add(POD_GROUPS, pod_group(earlier, {}, frozenset()))
    group = desk.add(POD_GROUPS, pod_group(desk.job, {}, frozenset()).metadata.name, desk.owned(earlier))
    groups = desk.groups()
    assert groups.find(desk.job) is None
    with pytest.raises(Retry, match="is not this Job's"):
        groups.ensure(desk.job, [])
    groups.delete(desk.job)
    assert desk.api.all(POD_GROUPS) == [made, group]


@pytest.mark.parametrize("current", [False, True])
def test_pods_are_born_by_the_placement_of_their_own_gang(desk: Desk, *, current: bool) -> None:
    """Not by that of an earlier PodGroup of its name, whose nodes may be others' by now."""
    group = desk.api.add(POD_GROUPS, pod_group(desk.job, {}, frozenset()))
    uid = group.metadata.uid if current else "earlier"
    spec = {"podGroupUID": uid, "epoch": 1, "podSets": []}
    placement = desk.api.add(
        PLACEMENTS, {"metadata": {"name": group.metadata.name}, "spec": spec, "status": {"phase": "Planned"}}, "n"
    )
    assert desk.groups().placement(group) == (placement if current else None)


def test_a_podgroup_that_was_made_again_is_brought_up_to_date(desk: Desk) -> None:
    """That the one before it fitted the Job says nothing of this one."""
    groups = desk.groups()
    made = groups.ensure(desk.job, [])
    assert groups.find(desk.job) == made, "though no cache shows it yet"
    desk.api.remove(POD_GROUPS, made)
    desk.expectations.groups.drop(made.metadata.key)
    again = desk.api.add(POD_GROUPS, pod_group(desk.job, {}, frozenset()))
    desk.api.change(POD_GROUPS, again.metadata.name, {"spec": {"minMember": 1}}, "n")
    cast("Any", groups)._groups.add_object(desk.api.all(POD_GROUPS)[0])
    groups.ensure(desk.job, [])
    assert desk.api.all(POD_GROUPS)[0].spec.min_member == made.spec.min_member


@pytest.mark.parametrize("own", [False, True])
def test_a_pod_that_has_the_name_is_adopted_only_if_it_is_this_job_s(desk: Desk, earlier: Job, *, own: bool) -> None:
    """The answer to its creation may have been lost; that of an earlier Job is about to go."""
    manifest = desk.pod(0)
    desk.api.add(PODS, manifest if own else desk.pod(0, earlier))
    effects = desk.effects()
    failures = effects.create_pods(desk.job, [[manifest]])
    effects.close()
    assert bool(failures) != own
    assert len(desk.expectations.pods(reference(desk.job), [])) == own


REMEDY = "delete it, or give the Job or its task another name"
BY_OWNER = "its owner reference (volcano.sh/task-spec, volcano.sh/task-index name another pod)"
IN_THE_WAY = {
    "of nobody": ({"ownerReferences": []}, f"exists already and has no owner; {REMEDY}"),
    "of this Job by its owner alone": ({}, f"exists already and belongs to this Job only by {BY_OWNER}; {REMEDY}"),
    "gone by now": (NotFound("it has gone"), "had the same name and was just deleted; the Job's pod will be created"),
    "not readable": (ServerError("broken"), "cannot be read: broken"),
}


@pytest.mark.parametrize(("found", "why"), IN_THE_WAY.values(), ids=IN_THE_WAY)
def test_a_pod_that_is_in_the_way_is_told_of(desk: Desk, monkeypatch: pytest.MonkeyPatch, found: Any, why: str) -> None:
    """With what to do about it."""
    more = found if isinstance(found, dict) else {}
    meta = {"name": "j-w-0", "namespace": "n", **desk.owned(), **more}
    desk.api.add(PODS, {"metadata": meta, "spec": {"containers": []}})

    def get(*_: object, **__: object) -> None:
        raise found

    if isinstance(found, Exception):
        monkeypatch.setattr(desk.api, "get", get)
    effects = desk.effects()
    failures = effects.create_pods(desk.job, [[desk.pod(0)]])
    effects.close()
    assert failures == [f"pod j-w-0 {why}"]


def test_a_podgroup_that_is_being_deleted_is_waited_for(desk: Desk) -> None:
    """The Job needs another one, under the same name."""
    made = desk.api.add(POD_GROUPS, pod_group(desk.job, {}, frozenset()))
    desk.api._mark(POD_GROUPS, made)
    with pytest.raises(Retry, match=f"PodGroup {made.metadata.name} is still being deleted"):
        desk.groups().ensure(desk.job, [])


class OneMap:
    """As much of a plugin as is needed."""

    def objects(self, _: Job) -> list[Owned]:
        """A ConfigMap."""
        return [Owned(CONFIG_MAPS, {"metadata": {"name": "c"}})]


@pytest.mark.parametrize("own", [False, True])
def test_an_object_of_an_earlier_job_is_neither_changed_nor_deleted(desk: Desk, earlier: Job, *, own: bool) -> None:
    """The pods wait until it has gone."""
    found = desk.add(CONFIG_MAPS, "c", desk.owned(desk.job if own else earlier))
    objects, plugins = JobObjects(desk.client), [cast("Any", OneMap())]
    if own:
        objects.ensure(desk.job, plugins)
    else:
        with pytest.raises(ObjectError, match="exists already and belongs to Job j"):
            objects.ensure(desk.job, plugins)
    objects.delete(desk.job, plugins)
    assert desk.api.all(CONFIG_MAPS) == ([] if own else [found])


@pytest.mark.parametrize("own", [False, True])
def test_a_native_podgroup_of_somebody_else_is_left_alone(desk: Desk, *, own: bool) -> None:
    """Also one of an earlier gang of this name, which goes when its pods have gone."""
    group = desk.api.add(POD_GROUPS, pod_group(desk.job, {}, frozenset()))
    published = native_of(group)
    owners = published.metadata.owner_references
    others = [structs.replace(owner, uid=owner.uid if own else "earlier") for owner in owners]
    meta = structs.replace(published.metadata, owner_references=others)
    desk.api.add(NATIVE_POD_GROUPS, structs.replace(published, metadata=meta))
    larger = structs.replace(group, spec=structs.replace(group.spec, min_member=5))
    NativeGroupWorker(desk.kit, desk.caches)._publish(group.metadata.key, larger)
    policy = desk.api.all(NATIVE_POD_GROUPS)[0].spec.scheduling_policy
    assert (policy == native_of(larger).spec.scheduling_policy) == own


def test_a_job_of_a_train_job_counts_from_its_creation_to_its_deletion(desk: Desk) -> None:
    """Whatever the caches show, which is nothing here."""
    train = desk.add(TRAIN_JOBS, "t", spec={"runtimeRef": {"name": "r"}})
    owner = manifests.owner("t", "TrainJob", TRAIN_JOBS.api_version, train.metadata.uid)
    maker = ChildSteps(desk.kit, desk.caches, cast("Any", SimpleNamespace(get=lambda *_: None)))
    for api_version, name in ((JOBS.api_version, "t"), (INDEXED_JOBS.api_version, "t-i-0")):
        meta = {"name": name, "namespace": "n", "ownerReferences": [owner]}
        maker.run_step(train, steps.Create({"apiVersion": api_version, "metadata": meta, "spec": {}}))
    found = maker.children(train, ["t-i-0"])
    assert found.job
    assert [*found.initializers] == ["t-i-0"]
    for one in (found.job, found.initializers["t-i-0"]):
        maker.run_step(train, steps.Delete(one, "a test"))
    found = maker.children(train, ["t-i-0"])
    assert (found.job, found.initializers) == (None, {})


@pytest.mark.parametrize("known", ["by its counts", "by the cache", "by the refusal"])
@pytest.mark.parametrize(
    ("once", "live", "verbs"),
    [(False, "as wanted", []), (False, "otherwise", ["apply"]), (True, "as wanted", []), (True, "otherwise", [])],
)
def test_an_object_of_a_train_job_that_differs_is_changed_unless_it_is_made_once(
    desk: Desk, live: str, verbs: list[str], *, once: bool, known: str
) -> None:
    """One that is as it should be is not written; three things tell that it exists."""
    status = {
        "jobsStatus": [dict.fromkeys(("ready", "succeeded", "failed", "active", "suspended"), 0) | {"name": "node"}]
    }
    train = desk.add(
        TRAIN_JOBS, "t", spec={"runtimeRef": {"name": "r"}}, status=status if known == "by its counts" else {}
    )
    owner = manifests.owner("t", "TrainJob", TRAIN_JOBS.api_version, train.metadata.uid)
    meta = {"name": "c", "namespace": "n", "ownerReferences": [owner]}
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"a": "as wanted"}}
    there = desk.api.add(CONFIG_MAPS, {**manifest, "data": {"a": live}})
    maker = ChildSteps(desk.kit, desk.caches, cast("Any", SimpleNamespace(get=lambda *_: None)))
    if known == "by the cache":
        maker.maps.store.add_object(there)
    maker.run_step(train, steps.Ensure(Component(manifest, "a plugin", once=once)))
    verbs = ["create"] if known == "by the refusal" else verbs
    assert [each.site.rpartition(" ")[2] for each in desk.api.sent] == verbs
    assert maker._ensured[train.metadata.uid]["ConfigMap/c"].uid == there.metadata.uid

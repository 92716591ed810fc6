"""Each write of the controller names the object and the version that it was decided upon, as its table says."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import msgspec
import pytest
from certificates_world import TERMS, WEBHOOK
from guarded_api import Sent, sites_of
from guarded_controller import Desk
from msgspec import structs

import controller
from certs.issuing import all_steps
from certs.rotation import Situation
from controller.certificates import CertificateOptions, Keeper
from controller.flow.controller import JobTemplates
from controller.gangs.native import NativeGroupWorker
from controller.gangs.podgroups import PodGroups
from controller.job.objects import JobObjects
from controller.job.reconcile import Reconciler
from controller.live import delete, write_status
from controller.queues import rules
from controller.queues.controller import QueueController
from controller.trainjob.children import ChildSteps
from controller.trainjob.report import Reports
from controller.trainjob.rules import steps
from controller.trainjob.rules.reports import ReportTarget
from controller.trainjob.runtimes import FINALIZER, Finalizers
from muster.api import names
from muster.api.base import Resource
from muster.api.kubeflow.trainer import TRAIN_JOBS, TrainJob
from muster.api.kubeflow.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from muster.api.kubernetes.core import CONFIG_MAPS, INDEXED_JOBS, PODS, SERVICES
from muster.api.kubernetes.extensions import CERTIFICATE_SECRETS, MUTATING_WEBHOOKS
from muster.api.kubernetes.scheduling import NATIVE_POD_GROUPS
from muster.api.volcano.batch import JOBS
from muster.api.volcano.flow import JOB_FLOWS, JOB_TEMPLATES, MADE_OF
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES, PodGroup
from muster.kube.errors import APIError, Forbidden
from muster.runtime.plan import Component
from muster.volcano.native import native_of
from muster.volcano.plugins.base import Owned

UID, VERSION, BOTH = frozenset({"uid"}), frozenset({"resourceVersion"}), frozenset({"uid", "resourceVersion"})
TRAIN = msgspec.convert({"metadata": {"name": "t"}, "spec": {"runtimeRef": {"name": "r"}}}, TrainJob)


class Process(Desk):
    """An API server, and what the writers of the controller need besides."""

    def group(self, **spec: Any) -> PodGroup:
        """The PodGroup of the Job."""
        made: PodGroup = self.add(POD_GROUPS, "g", self.owned(), spec={"minMember": 1, "queue": "default", **spec})
        return made


def _owner(res: Resource[Any], found: Any) -> dict[str, Any]:
    """A reference to an object's controller."""
    meta = found.metadata
    return {"apiVersion": res.api_version, "kind": res.kind, "name": meta.name, "uid": meta.uid, "controller": True}


def _larger(group: PodGroup) -> PodGroup:
    return structs.replace(group, spec=structs.replace(group.spec, min_member=2))


def names_a_pod(on: Process) -> None:
    """A pod gets the annotation of its gang."""
    PodGroups(on.kit, on.caches)._name(on.add(PODS, "p"), "g")


def changes_a_group(on: Process) -> None:
    """The PodGroup of a workload gets another minimum."""
    group = on.group()
    PodGroups(on.kit, on.caches)._update(group, _larger(group), on.add(PODS, "p"), None)


def keeps_the_queue_of_a_group(on: Process) -> None:
    """Its queue may not change; the rest is written."""
    group = on.group()
    wanted = _larger(group)
    moved = structs.replace(wanted, spec=structs.replace(wanted.spec, queue="closed"))

    meddle = on.api.meddle

    def refuses(_: Sent) -> None:
        on.api.sent.clear()
        on.api.meddle = meddle
        raise Forbidden("denied the request: queue closed is closed")

    on.api.meddle = refuses
    with suppress(Forbidden):
        PodGroups(on.kit, on.caches)._update(group, moved, on.add(PODS, "p"), None)


def completes_a_group(on: Process) -> None:
    """The Job of a gang has ended."""
    over = on.add(INDEXED_JOBS, "b", status={"conditions": [{"type": "Complete", "status": "True"}]})
    group = on.add(POD_GROUPS, "g", {"ownerReferences": [_owner(INDEXED_JOBS, over)]}, spec={"minMember": 1})
    on.caches.groups.store.add_object(group)
    PodGroups(on.kit, on.caches)._end(group.metadata.key)


def publishes(on: Process) -> None:
    """A native PodGroup gets the minimum of its gang."""
    group = on.group()
    known = on.api.add(NATIVE_POD_GROUPS, native_of(group))
    on.caches.natives.store.add_object(known)
    NativeGroupWorker(on.kit, on.caches)._publish(group.metadata.key, _larger(group))


def has_been_scheduled(on: Process) -> None:
    """A native PodGroup gets the condition that its gang has had its nodes."""
    known = on.api.add(NATIVE_POD_GROUPS, native_of(on.group()))
    NativeGroupWorker(on.kit, on.caches)._report(known)


def lists_jobs(on: Process) -> None:
    """A JobTemplate lists the Jobs that were made of it."""
    template = on.add(JOB_TEMPLATES, "t", spec={"tasks": []})
    made_of = {"annotations": {MADE_OF: "n.t"}, "ownerReferences": [_owner(JOB_FLOWS, on.add(JOB_FLOWS, "f"))]}
    on.caches.jobs.store.add_object(on.add(JOBS, "made", made_of, spec={"tasks": []}))
    templates = JobTemplates(on.kit, on.caches)
    templates.cache.store.add_object(template)
    templates.process(template.metadata.key)


def deletes_a_pod(on: Process) -> None:
    """A pod of the Job, marked before."""
    effects = on.effects()
    pod = on.add(PODS, "p", on.owned())
    failures = effects.delete_pods(on.job, [pod], why="Restart", mark=True)
    assert failures == [], "the pod that was meant is gone, or it is deleted now"
    deletion = on.expectations.deletion(pod.metadata.uid)
    assert deletion is not None
    assert deletion.ours == (on.api.find(PODS, "p", "n").metadata.uid == pod.metadata.uid if on.api.all(PODS) else True)
    effects.close()


def deletes_an_object(on: Process) -> None:
    """One that may have been replaced meanwhile."""
    assert delete(on.client, CONFIG_MAPS, on.add(CONFIG_MAPS, "c").metadata) == (not on.api.all(CONFIG_MAPS))


def changes_an_object(on: Process) -> None:
    """An object of a plugin, which is the Job's."""
    manifest = {"metadata": {"name": "s"}, "spec": {"clusterIP": "None"}}
    on.add(SERVICES, "s", on.owned(), spec={})
    assert JobObjects(on.client)._made(on.job, Owned(SERVICES, manifest), change=True) is None


def changes_the_group_of_a_job(on: Process) -> None:
    """The Job is larger."""
    group = on.group()
    on.groups()._updated(group, _larger(group))


def deletes_a_job(on: Process) -> None:
    """Its time after finishing is over."""
    since = "2026-01-01T00:00:00Z"
    state = structs.replace(on.job.status.state, phase="Completed", last_transition_time=since)
    job = structs.replace(on.job, status=structs.replace(on.job.status, state=state))
    context = SimpleNamespace(
        client=on.client, wall_s=lambda: 2e9, needed=lambda _: False, requeue_after=lambda *_: None
    )
    reconciler = Reconciler.__new__(Reconciler)
    reconciler._context = cast("Any", context)
    assert reconciler._expired(job)


def writes_a_status(on: Process) -> None:
    """Of a Job."""
    write_status(on.client, JOBS, on.job, {"running": 1})


def _queues(on: Process) -> QueueController:
    return QueueController(on.kit, on.caches)


def gives_a_parent(on: Process) -> None:
    """A queue without a parent gets one."""
    _queues(on)._reconcile(on.add(QUEUES, "q", spec={}))


def counts_a_queue(on: Process) -> None:
    """A queue is open, and has gangs."""
    wanted = rules.WantedState("Open", by_parent=False)
    _queues(on)._write(on.add(QUEUES, "q", spec={"parent": "root"}), wanted, rules.Load(Counter({"Running": 2})))


def marks_a_queue(on: Process) -> None:
    """A queue is closed since its parent is."""
    _queues(on)._mark(on.add(QUEUES, "q", spec={"parent": "root"}), mark=True)


def _take(on: Process, step: steps.Step) -> None:
    ChildSteps(on.kit, on.caches, cast("Any", None)).run_step(TRAIN, step)


def suspends(on: Process) -> None:
    """The initializer of a TrainJob is suspended."""
    _take(on, steps.Suspend(on.add(INDEXED_JOBS, "b", spec={}), suspend=True))


def scales(on: Process) -> None:
    """The Job of a TrainJob gets another number of pods."""
    wanted = {"spec": {"minAvailable": 2, "tasks": []}}
    _take(on, steps.PatchJob(on.job, steps.changes(on.job, wanted, "")))


def deletes_the_job_of_a_train_job(on: Process) -> None:
    """It is made again."""
    _take(on, steps.Delete(on.job, "a test"))


def ensures(on: Process) -> None:
    """An object of a TrainJob is as its plugin has it."""
    train = on.add(TRAIN_JOBS, "t", spec={"runtimeRef": {"name": "r"}})
    on.add(SERVICES, "s", {"ownerReferences": [_owner(TRAIN_JOBS, train)]}, spec={})
    meta = {"name": "s", "namespace": "n"}
    manifest = {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"clusterIP": "None"}}
    maker = ChildSteps(on.kit, on.caches, cast("Any", None))
    with_status = structs.replace(train, status=structs.replace(train.status, jobs_status=[cast("Any", object())]))
    maker._ensure(with_status, steps.Ensure(Component(manifest, "torch")))


def frees_a_runtime(on: Process) -> None:
    """The finalizer of an earlier trainer goes."""
    runtime = on.add(CLUSTER_TRAINING_RUNTIMES, "r", {"finalizers": [FINALIZER, "mine"]})
    finalizers = Finalizers(on.kit)
    finalizers.reflectors[CLUSTER_TRAINING_RUNTIMES.plural].store.add_object(runtime)
    finalizers.process("r")


def notes_a_checkpoint(on: Process) -> None:
    """The gang of a TrainJob gets the checkpoint that its trainer has reported."""
    on.add(POD_GROUPS, "g", {"labels": {names.TRAIN_JOB: "t"}}, spec={})
    Reports(on.client)._note(ReportTarget("n", "t"), "step=7")


NOW = Situation(now_s=1.8e9, terms=TERMS, wanted=[WEBHOOK])


def _keeper(on: Process) -> tuple[Keeper, Any]:
    content, _ = all_steps(None, [], NOW)
    name = "certs"
    options = CertificateOptions(secret=name, issuer="own", wanted=(WEBHOOK,), terms=TERMS)
    return Keeper(on.client, options, "n", monotonic_s=lambda: 0.0, wall_s=lambda: 1.8e9), content


def keeps_certificates(on: Process) -> None:
    """The Secret gets new ones."""
    keeper, content = _keeper(on)
    keeper._store(on.add(CERTIFICATE_SECRETS, keeper._options.secret), content)


def trusts_certificates(on: Process) -> None:
    """The webhooks trust them."""
    keeper, content = _keeper(on)
    found = on.add(MUTATING_WEBHOOKS, names.WEBHOOKS, webhooks=[{"name": "w", "clientConfig": {}}])
    answer = keeper._trust(MUTATING_WEBHOOKS, found, content, NOW)
    assert answer is True or isinstance(answer, APIError)


class Case(NamedTuple):
    """A write: its call site, who sends it, and the preconditions that it names."""

    site: str
    act: Callable[[Process], None]
    named: frozenset[str]


CASES = [
    Case("certificates.Keeper._store merge_patch", keeps_certificates, VERSION),
    Case("certificates.Keeper._trust strategic_patch", trusts_certificates, VERSION),
    Case("live.patch_object merge_patch", publishes, UID),
    Case("live.patch_object merge_patch", names_a_pod, UID),
    Case("live.patch_object merge_patch", changes_a_group, UID),
    Case("live.patch_object merge_patch", completes_a_group, UID),
    Case("live.patch_object merge_patch", keeps_the_queue_of_a_group, UID),
    Case("live.patch_object merge_patch", deletes_a_pod, UID),
    Case("live.patch_object merge_patch", changes_the_group_of_a_job, UID),
    Case("job.objects.JobObjects._made apply", changes_an_object, UID),
    Case("job.reconcile.Reconciler._expired delete", deletes_a_job, BOTH),
    Case("live.delete delete", deletes_a_pod, UID),
    Case("live.delete delete", deletes_an_object, UID),
    Case("live.write_status merge_patch", has_been_scheduled, BOTH),
    Case("live.write_status merge_patch", writes_a_status, BOTH),
    Case("live.write_status merge_patch", counts_a_queue, BOTH),
    Case("live.write_status merge_patch", lists_jobs, BOTH),
    Case("queues.controller.QueueController._reconcile merge_patch", gives_a_parent, VERSION),
    Case("queues.controller.QueueController._mark merge_patch", marks_a_queue, VERSION),
    Case("trainjob.children.ChildSteps._ensure apply", ensures, UID),
    Case("trainjob.children.ChildSteps.delete delete", deletes_the_job_of_a_train_job, UID),
    Case("trainjob.children.ChildSteps.run_step json_patch", scales, UID),
    Case("live.patch_object merge_patch", suspends, UID),
    Case("trainjob.runtimes.Finalizers.process merge_patch", frees_a_runtime, VERSION),
    Case("trainjob.report.Reports._note merge_patch", notes_a_checkpoint, UID),
]
MADE = {
    "certificates.Keeper._store create", "job.effects.PodEffects._create create", "live.find_or_make create",
    "queues.controller.QueueController._without_queue create", "trainjob.children.ChildSteps._command create",
    "trainjob.children.ChildSteps._ensure create", "trainjob.report.Reports.accept_report create",
    "trainjob.runtimes.RuntimeFinder._keep create",
}  # fmt: skip
"""What is created is refused where its name is taken."""
BY_NAME = {
    "shipped.Shipped.process apply",  # without force: never over a change of a user
    "trainjob.report.Reports.accept_report apply",  # the token is for whatever TrainJob has this name
    "trainjob.runtimes.RuntimeFinder._at request",  # a GET
    "trainjob.watched.Kinds.resource_of request",  # a GET
}


def label(case: Case) -> str:
    """The case in the name of a test."""
    return f"{case.site} {case.act.__name__}"


def acted(case: Case, meddle: Callable[[Process, Sent], None] = lambda *_: None) -> tuple[Process, list[Sent]]:
    """The writes of a case from its site."""
    process = Process()

    def before(sent: Sent) -> None:
        if sent.site == case.site:
            meddle(process, sent)

    process.api.meddle = before
    with suppress(APIError):
        case.act(process)
    return process, [sent for sent in process.api.sent if sent.site == case.site]


def test_every_write_has_its_line_in_the_table() -> None:
    """A new one needs a line too: what if another object has that name by then, or the object has changed?"""
    assert sites_of(controller) == Counter({case.site for case in CASES} | MADE | BY_NAME)


@pytest.mark.parametrize("case", CASES, ids=label)
def test_a_write_names_what_it_was_decided_upon(case: Case) -> None:
    """And is carried out where nothing has changed."""
    _, sent = acted(case)
    assert sent
    assert {(one.named, one.refused) for one in sent} == {(case.named, "")}


@pytest.mark.parametrize(
    ("case", "precondition"),
    [pytest.param(case, one, id=f"{label(case)}, {one}") for case in CASES for one in sorted(case.named)],
)
def test_another_object_or_version_in_that_place_stays_as_it_is(case: Case, precondition: str) -> None:
    """The write is refused."""
    others: dict[str, object] = {}

    def meddle(process: Process, sent: Sent) -> None:
        if sent.key not in others:
            others[sent.key] = process.api.replaced(sent, precondition)

    process, sent = acted(case, meddle)
    assert sent
    assert {one.refused for one in sent} <= {"Conflict", "Invalid"}
    for one in sent:
        assert process.api.kind(one.resource)[one.key] is others[one.key]

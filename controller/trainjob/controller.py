"""The controller of TrainJobs: the next steps and the status of each TrainJob.

Steps and status depend only on the TrainJob's spec, its stored runtime and the existing objects, so any process would
decide the same.
"""

from collections.abc import Sequence
from functools import partial
from typing import Literal

from msgspec import structs

from controller.caches import SharedCaches, packed
from controller.kit import KindController, Kit
from controller.live import controller_key
from controller.trainjob.children import ChildSteps
from controller.trainjob.cleanup import Cleanup
from controller.trainjob.obstacle import Obstacle
from controller.trainjob.report import PASS_EVERY_S, Authorities
from controller.trainjob.rules import outcome, status
from controller.trainjob.rules.children import Children, before, finished, initializer_name
from controller.trainjob.rules.outcome import Computed, EndCondition
from controller.trainjob.rules.steps import Create, Step, decide
from controller.trainjob.runtimes import RuntimeFinder
from controller.trainjob.watched import Watched
from controller.worker import Retry
from muster.api import names
from muster.api.kubeflow.jobset import ReplicatedJobStatus
from muster.api.kubeflow.trainer import TRAIN_JOBS, TrainJob
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.meta import Condition, Object, format_time
from muster.api.merge_diff import difference
from muster.api.volcano.scheduling import PodGroup
from muster.kube.claims import read_claim
from muster.kube.errors import Refused
from muster.runtime import registry
from muster.runtime.framework import Framework
from muster.runtime.plan import Compiled, Plan
from muster.runtime.settings import NETWORK_POLICY, annotation
from muster.runtime.train_job import Target, compile_train_job
from muster.volcano.tasks import job_of

BLOCKED_S = 10.0
"""Time until the next attempt for a blocked TrainJob."""
WITHOUT_PODS_S = 10.0
"""Interval, in seconds, at which the Events of a batch/v1 Job without pods are read."""
RETRIED_S = 1200.0
"""Age, in seconds, from which a rejection in an Event no longer counts as current.

JobSet's controller retries after at most 1,000 s. The Job controller retries after at most 60 s and records an Event at
least every 5 minutes."""
PODS_S = 0.1
"""Delay between a change of a pod and the pass, so that one pass handles the changes of all pods of a TrainJob."""


class TrainJobs(KindController[TrainJob]):
    """The controller of TrainJobs.

    Trainers themselves write the field `trainerStatus` of the status; the controller writes all other fields.
    `authorities` are the certificate authorities that trainers trust for reports; None without a status server. With
    `network_policies`, pods of other jobs have no access, unless the TrainJob or its runtime allows it.
    """

    def __init__(
        self,
        kit: Kit,
        caches: SharedCaches,
        *,
        framework: Framework | None = None,
        authorities: Authorities | None = None,
        target: Target = "Job",
        network_policies: bool = True,
        threads: int = 1,
    ) -> None:
        super().__init__(kit, "trainjob", TRAIN_JOBS, packed(kit.client, TRAIN_JOBS), threads=threads)
        self._framework = framework or registry.framework()
        self._authorities, self._target, self._network_policies = authorities, target, network_policies
        self.watched = Watched(kit.client, self._framework, job_sets=target == "JobSet")
        self._steps = ChildSteps(kit, caches, self.watched)
        self._cleanup = Cleanup(kit, self._steps)
        self._runtimes = RuntimeFinder(kit.client, kit.recorder, self._steps.maps.store, target)
        self._compiled: dict[str, tuple[tuple[int, str, str], Compiled]] = {}
        self.reflectors |= {"jobs of trainjobs": self._steps.initializers, "configmaps of trainjobs": self._steps.maps}
        self.handlers += [
            (self._steps.initializers, self._child_seen),
            (self._steps.maps, self._child_seen),
            (self.watched, self._child_seen),
            (caches.jobs, self._child_seen),
            (caches.groups, self._group_seen),
            (caches.pods, self._pod_seen),
        ]

    def _seen(self, old: TrainJob | None, new: TrainJob | None) -> None:
        if old and (new is None or new.metadata.uid != old.metadata.uid):
            self._forget(old)
        super()._seen(old, new)

    def _relevant_fields(self, obj: TrainJob) -> tuple[object, ...]:
        """Return the fields of a TrainJob that affect a pass, including its annotations, conditions and counts.

        Reports of trainers and the messages of conditions are excluded: a refusal with a different message each time
        would cause endless immediate retries.
        """
        held = [(each.type, each.status, each.reason) for each in obj.status.conditions]
        return *super()._relevant_fields(obj), obj.metadata.annotations, held, obj.status.jobs_status

    def _child_seen(self, old: Object | None, new: Object | None) -> None:
        """Queue the TrainJob that controls a changed object, if any."""
        child = new or old
        key = controller_key(child.metadata, TRAIN_JOBS) if child else None
        if key:
            self.worker.queue.add(key)

    def _group_seen(self, old: PodGroup | None, new: PodGroup | None) -> None:
        """Queue the TrainJob of a JobSet whose gang begins or stops waiting for nodes."""
        if bool(status.why_the_gang_waits(old)) != bool(status.why_the_gang_waits(new)):
            self._child_seen(old, new)

    def _pod_seen(self, old: Pod | None, new: Pod | None) -> None:
        """Queue the TrainJob of a pod whose state has changed."""
        pod = new or old
        job = job_of(pod.metadata) if pod and names.REPLICATED_JOB in pod.metadata.labels else None
        if job is None or self.cache.store.get(job.key) is None:  # a TrainJob and its Job have the same name
            return
        if old is None or new is None or _state(old) != _state(new):
            self.worker.queue.add_after(job.key, PODS_S)

    def process(self, key: str) -> None:
        """Run one pass. Nothing is done for a TrainJob that is being deleted or that another controller manages."""
        train_job = self.newest(key)
        if train_job is None or train_job.metadata.deletion_timestamp or not train_job.managed_here:
            return
        if finished(train_job):
            self._after_the_end(train_job)
            return
        try:
            ended = self._go_on(train_job)
        except Obstacle as obstacle:
            self._blocked(train_job, str(obstacle), passing=obstacle.passing)
        except Refused as error:
            self._blocked(train_job, f"the API server refuses an object that this TrainJob needs: {error.message}")
        else:
            if ended:  # a TrainJob that has ended stays ended
                self._after_the_end(ended)

    def _forget(self, train_job: TrainJob) -> None:
        """Drop the data of a TrainJob that has ended or was deleted."""
        uid = train_job.metadata.uid
        self._compiled.pop(uid, None)
        self._runtimes.forget(uid)
        self._steps.forget(uid)

    def _go_on(self, train_job: TrainJob) -> TrainJob | None:
        """Decide on the next steps of a TrainJob and carry out these steps; return the TrainJob if it has ended."""
        compiled = self._compile(train_job)
        if compiled.plan is None:
            why = "; ".join(map(str, compiled.errors))
            raise Obstacle(f"this TrainJob does not match its runtime: {why}")
        plan = compiled.plan
        children = self._children(train_job, plan)
        now_s = self._wall_s()
        theirs = self.watched.computed(train_job, children.job_set)
        end = outcome.outcome(children) or theirs.end
        left_s = outcome.left_s(train_job, children, now_s)
        if end is None and left_s is not None and left_s <= 0:
            end = outcome.deadline_exceeded(train_job, children)
        train_job = self._write(train_job, plan, children, theirs, end)
        if end:
            kind: Literal["Normal", "Warning"] = "Normal" if end.type == "Complete" else "Warning"
            self._recorder.event(train_job, kind, end.reason, end.message)
            if end.type == "Failed" and children.group:
                self._steps.fail_gang(children.group, end.message)
            return train_job
        if left_s is not None:
            self.worker.queue.add_after(train_job.metadata.key, left_s)
        if self._authorities:
            self.worker.queue.add_after(train_job.metadata.key, PASS_EVERY_S)
        self._take(train_job, decide(train_job, plan, compiled.components, children))
        if any(each.type == status.BLOCKED for each in train_job.status.conditions):
            self._write(train_job, plan, self._children(train_job, plan), theirs, None, unblocked=True)
        return None

    def _take(self, train_job: TrainJob, steps: list[Step]) -> None:
        """Run all steps of a pass, even if some of them fail; then raise the error of the first failed step.

        After a failed step, no Job is created.
        """
        obstacle: Exception | None = None
        for step in steps:
            if obstacle and isinstance(step, Create):
                continue
            try:
                self._steps.run_step(train_job, step)
            except (Obstacle, Refused) as error:
                obstacle = obstacle or error
        if obstacle:
            raise obstacle

    def _compile(self, train_job: TrainJob) -> Compiled:
        """Return plan and components of a TrainJob; recompute both if its generation, nodes or authorities change."""
        meta, authorities = train_job.metadata, self._authorities
        trusted = authorities.pem() if authorities else ""
        version = (meta.generation, meta.annotations.get(names.NUM_NODES, ""), trusted)
        known, compiled = self._compiled.get(meta.uid, (None, None))
        if compiled is None or known != version:
            runtime = self._runtimes.runtime_of(train_job)
            if not self._network_policies:
                runtime.metadata.annotations.setdefault(annotation(NETWORK_POLICY), "false")
            claims = partial(read_claim, self._client, meta.namespace)
            compiled = compile_train_job(train_job, runtime, self._framework, self._target, claims)
            self._compiled[meta.uid] = (version, compiled)
        return compiled

    def _children(self, train_job: TrainJob, plan: Plan) -> Children:
        return self._steps.children(train_job, [initializer_name(train_job, each.name) for each in before(plan)])

    def _write(
        self,
        train_job: TrainJob,
        plan: Plan,
        children: Children,
        theirs: Computed,
        end: EndCondition | None,
        *,
        unblocked: bool = False,
    ) -> TrainJob:
        """Write the status. The condition `Blocked` remains until a pass has carried out all steps."""
        statuses = theirs.with_counts(status.jobs_status(train_job, plan, children))
        blocked = [each.message for each in train_job.status.conditions if each.type == status.BLOCKED]
        obstacle = self._refusal(train_job, children, statuses) if unblocked or not blocked else blocked[0]
        held = status.conditions(
            train_job,
            now=format_time(self._wall_s()),
            trains=status.trains(statuses, plan),
            obstacle=obstacle,
            waits=status.why_waiting(children),
            end=end,
        )
        before_ = {each.type: each.status for each in train_job.status.conditions}
        digest = self._runtimes.digest(train_job.metadata.uid)
        written = self._with_status(train_job, statuses, held, digest)
        for each in held:
            if before_.get(each.type) == each.status:
                continue
            if each.type == status.SUSPENDED:
                self._recorder.event(train_job, "Normal", each.reason, each.message)
            elif each.type == status.BLOCKED:
                self._recorder.event(train_job, "Warning", each.reason, each.message)
        return written

    def _refusal(self, train_job: TrainJob, children: Children, statuses: Sequence[ReplicatedJobStatus]) -> str:
        """Return the API server's message if pods of the TrainJob cannot be created; otherwise ""."""
        state = children.job.status.state if children.job else None
        if state and state.refusal:
            return f"Job {train_job.metadata.name}: {state.refusal}"
        meta = train_job.metadata
        for name, since_s in status.without_pods(train_job, children, statuses):
            self.worker.queue.add_after(meta.key, WITHOUT_PODS_S)
            makers = {"Job": name, **({"JobSet": meta.name} if children.job_set else {})}
            now = self._wall_s()
            late = now - since_s >= WITHOUT_PODS_S
            if late and (why := self._steps.refusal(makers, meta.namespace, max(since_s, now - RETRIED_S))):
                return why
        return ""

    def _after_the_end(self, train_job: TrainJob) -> None:
        """Delete the remaining objects of a TrainJob that has ended, or request a later pass for the deletion."""
        self._forget(train_job)
        left_s = self._cleanup.delete_left(train_job)
        if left_s is not None:
            self.worker.queue.add_after(train_job.metadata.key, left_s)

    def _blocked(self, train_job: TrainJob, why: str, *, passing: bool = False) -> None:
        """Report the obstacle in the TrainJob's status and in an Event, and request a later pass."""
        if passing:
            raise Retry(why)
        held = status.conditions(train_job, now=format_time(self._wall_s()), obstacle=why)
        if why not in {each.message for each in train_job.status.conditions}:
            self._recorder.event(train_job, "Warning", status.CREATION_FAILED, why)
        newest = self.newest(train_job.metadata.key)
        self._with_status(newest or train_job, train_job.status.jobs_status, held)
        self.worker.queue.add_after(train_job.metadata.key, BLOCKED_S)

    def _with_status(
        self, train_job: TrainJob, jobs: list[ReplicatedJobStatus], held: list[Condition], runtime_digest: str = ""
    ) -> TrainJob:
        """Write this status if it differs; return the TrainJob. Raise Conflict if the TrainJob has changed."""
        old = train_job.status
        begun = any(job.ready or job.succeeded or job.failed or job.active or job.suspended for job in jobs)
        counts = jobs if old.jobs_status or begun else []
        kept = runtime_digest or old.runtime_digest
        wanted = structs.replace(old, conditions=held, jobs_status=counts, runtime_digest=kept)
        return self.patched(train_job, difference(old, wanted))


def _state(pod: Pod) -> tuple[str, bool, bool]:
    return pod.status.phase, status.is_ready(pod), bool(pod.metadata.deletion_timestamp)

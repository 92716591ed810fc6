"""The controllers of JobFlows, which create Jobs, and of JobTemplates, which list the Jobs created from them."""

from collections.abc import Mapping, Sequence
from contextlib import suppress

import structlog
from msgspec.structs import replace

from controller.caches import TEMPLATE_INDEX, OwnWrites, SharedCaches, packed, template_keys
from controller.flow.rules import due, is_forgotten, status_of
from controller.kit import KindController, Kit
from controller.live import controller_key, delete, find_or_make, owned_by, owner_text
from controller.worker import Retry
from muster.api.kubernetes.meta import ObjectMeta, format_time, readable_time
from muster.api.limits import STEPS, TEMPLATE_JOBS
from muster.api.merge_diff import difference
from muster.api.volcano.batch import FINISHED, JOBS, Job
from muster.api.volcano.flow import (
    JOB_FLOWS,
    JOB_TEMPLATES,
    Flow,
    JobFlow,
    JobFlowStatus,
    JobTemplate,
    JobTemplateStatus,
    job_name,
)
from muster.kube.errors import NotFound, Refused
from muster.kube.reflector import Reflector
from muster.volcano.flows import check_steps
from muster.workloads.flow_jobs import job_manifest

log = structlog.get_logger(__name__)
BELIEVED_S = 30.0
"""Time for which a created Job counts as existing while no cache contains it."""
BLOCKED_S = 10.0
"""Time until the next attempt for a JobFlow whose next Job could not be created."""
_SHOWN = 3
"""Maximum number of errors that one Event of a JobFlow lists."""
FIRST_S = 2.0
"""Age, in seconds, from which a JobFlow without Jobs gets a status.

A client may still update its new object, and an earlier write, even of the status, would cause a conflict. Creation
timestamps have a resolution of one second."""
JOBS_S = 0.1
"""Delay between a change of a Job and the pass, so that one pass handles the changes of all Jobs of a JobFlow."""
LISTS_S = 1.0
"""Delay of the pass over a JobTemplate, so that one write of its list covers many new Jobs."""
STEP_INDEX = "step"
"""Index of the store of JobFlows: `namespace/name` of each JobTemplate that a step of the JobFlow uses."""


def _steps(job_flow: JobFlow) -> list[str]:
    """Index a JobFlow by its JobTemplates.

    A JobFlow with too many steps is not indexed, which limits the size of the index.
    """
    flows = job_flow.spec.flows
    return list({f"{job_flow.metadata.namespace}/{flow.name}" for flow in flows}) if len(flows) <= STEPS.value else []


def _end_of(job: Job) -> Job:
    """Return the fields of a deleted Job that the status of a JobFlow needs, without its spec, which may be large."""
    meta, status = job.metadata, job.status
    known = ObjectMeta(
        name=meta.name, namespace=meta.namespace, uid=meta.uid, creation_timestamp=meta.creation_timestamp,
        owner_references=[owner for owner in [meta.controller] if owner],
    )  # fmt: skip
    return Job(metadata=known, status=replace(status, conditions=[], controlled_resources={}))


class JobTemplates(KindController[JobTemplate]):
    """The controller of JobTemplates: the status of each JobTemplate lists the Jobs that were created from it."""

    def __init__(self, kit: Kit, caches: SharedCaches) -> None:
        super().__init__(kit, "jobtemplate", JOB_TEMPLATES, packed(kit.client, JOB_TEMPLATES))
        self._jobs = caches.jobs.store
        self.handlers.append((caches.jobs, self._job_seen))

    def _seen(self, old: JobTemplate | None, new: JobTemplate | None) -> None:
        self._written.seen(old, new)
        changed = new or old
        if changed:
            self.worker.queue.add_after(changed.metadata.key, LISTS_S)

    def _job_seen(self, old: Job | None, new: Job | None) -> None:
        """Queue the JobTemplate of a created or deleted Job, if the Job has a JobTemplate."""
        if old is None or new is None:
            for each in template_keys(new or old or Job()):
                self.worker.queue.add_after(each, LISTS_S)

    def process(self, key: str) -> None:
        """Run one pass over one JobTemplate."""
        template = self.newest(key)
        if template is None or template.metadata.deletion_timestamp:
            return
        made = sorted(each.rpartition("/")[2] for each in self._jobs.keys_by_index(TEMPLATE_INDEX, key))
        wanted = JobTemplateStatus(job_depends_on_list=made[: TEMPLATE_JOBS.value])
        with suppress(NotFound):
            self.patched(template, difference(template.status, wanted))


class JobFlows(KindController[JobFlow]):
    """The controller of JobFlows; `templates` is the cache of JobTemplates."""

    def __init__(self, kit: Kit, caches: SharedCaches, templates: Reflector[JobTemplate]) -> None:
        super().__init__(kit, "jobflow", JOB_FLOWS, packed(kit.client, JOB_FLOWS, {STEP_INDEX: _steps}))
        self._jobs, self._templates = caches.jobs.store, templates.store
        self.handlers += [(templates, self._template_seen), (caches.jobs, self._job_seen)]
        self._made = OwnWrites[Job](kit.monotonic_s, BELIEVED_S)
        self._ended: dict[str, dict[str, Job]] = {}
        """Maps the key of a JobFlow to deleted Jobs that had ended, by name, until the JobFlow's status contains
        them."""

    def _job_seen(self, old: Job | None, new: Job | None) -> None:
        """Queue the JobFlow of a changed Job, if a JobFlow controls the Job."""
        self._made.seen(old, new)
        for job in (old, new):
            key = controller_key(job.metadata, JOB_FLOWS) if job else None
            if job is None or key is None:
                continue
            gone = job is old and (new is None or new.metadata.uid != job.metadata.uid)
            if gone and job.status.state.phase in FINISHED and self._is_step(key, job):
                self._ended.setdefault(key, {})[job.metadata.name] = _end_of(job)
            self.worker.queue.add_after(key, JOBS_S)

    def _is_step(self, key: str, job: Job) -> bool:
        """Return True if the JobFlow has a step for this Job, and owns the Job.

        Any user can name any owner in a Job, so the owner's UID is compared.
        """
        job_flow = self.cache.store.get(key)
        if job_flow is None or not owned_by(job.metadata, job_flow.metadata.uid):
            return False
        flows = job_flow.spec.flows[: STEPS.value]
        return any(job_name(job_flow, flow.name) == job.metadata.name for flow in flows)

    def needs(self, job: Job) -> bool:
        """Return True while a Job's JobFlow has not recorded that the Job has ended.

        If an ended Job that is not recorded were deleted, its step would run again.
        """
        key = controller_key(job.metadata, JOB_FLOWS)
        job_flow = self.cache.store.get(key) if key else None
        return job_flow is not None and is_forgotten(job_flow, job)

    def _template_seen(self, old: JobTemplate | None, new: JobTemplate | None) -> None:
        if new and (old is None or old.spec != new.spec):
            for job_flow in self.cache.store.by_index(STEP_INDEX, new.metadata.key):
                if job_flow.status.state.phase not in {"Succeed", "Failed"}:
                    self.worker.queue.add(job_flow.metadata.key)

    def _relevant_fields(self, obj: JobFlow) -> tuple[object, ...]:
        """Return the fields of a JobFlow that affect a pass.

        The phase is one of these fields, because Jobs may be deleted once the JobFlow has ended.
        """
        return *super()._relevant_fields(obj), obj.status.state.phase

    def process(self, key: str) -> None:
        """Run one pass.

        No Jobs are created for a terminating JobFlow; its existing Jobs are deleted with the JobFlow.
        """
        job_flow = self.newest(key)
        if job_flow is None:
            self._ended.pop(key, None)
            return
        errors = [] if job_flow.metadata.deletion_timestamp else [str(each) for each in check_steps(job_flow)]
        if errors:
            why = "; ".join(errors[:_SHOWN])
            self._recorder.event(job_flow, "Warning", "InvalidFlow", f"no Jobs are made: {why}")
            return
        there, foreign = self._jobs_of(job_flow)
        uid, gone = job_flow.metadata.uid, self._ended.get(key, {})
        ended = {
            flow.name: job
            for flow in job_flow.spec.flows
            if (job := gone.get(job_name(job_flow, flow.name))) and owned_by(job.metadata, uid)
        }
        jobs = {**ended, **there}
        now = format_time(self._wall_s())
        with suppress(NotFound):
            if self._is_new(job_flow, jobs):
                self.worker.queue.add_after(key, FIRST_S)
                self._make_due(job_flow, due(job_flow, jobs), foreign)
                return
            job_flow = self._write_flow_status(job_flow, status_of(job_flow, jobs, frozenset(there), now))
            for job in ended.values():  # not all ended Jobs, because others may have ended in the meantime
                self._ended.get(key, {}).pop(job.metadata.name, None)
            if job_flow.status.state.phase == "Succeed" and job_flow.spec.job_retain_policy == "delete":
                self._delete(there)
                return
            message = "; ".join(self._make_due(job_flow, due(job_flow, jobs), foreign))
            state = replace(job_flow.status.state, message=message)
            self.patched(job_flow, difference(job_flow.status, replace(job_flow.status, state=state)))

    def _is_new(self, job_flow: JobFlow, jobs: Mapping[str, Job]) -> bool:
        """Return True if a JobFlow was just created, and its status would only report that the JobFlow waits."""
        created = readable_time(job_flow.metadata.creation_timestamp) or 0.0
        return not (jobs or job_flow.status.state.phase) and self._wall_s() - created < FIRST_S

    def _jobs_of(self, job_flow: JobFlow) -> tuple[dict[str, Job], dict[str, Job]]:
        """Return the existing Jobs of a JobFlow's steps, and Jobs of other owners whose names conflict with steps."""
        own: dict[str, Job] = {}
        foreign: dict[str, Job] = {}
        for flow in job_flow.spec.flows:
            key = f"{job_flow.metadata.namespace}/{job_name(job_flow, flow.name)}"
            job = self._made.newest(key, self._jobs.get(key))
            if job is not None:
                (own if owned_by(job.metadata, job_flow.metadata.uid) else foreign)[flow.name] = job
        return own, foreign

    def _write_flow_status(self, job_flow: JobFlow, status: JobFlowStatus) -> JobFlow:
        """Write the status if it differs; return the JobFlow. Raise Conflict if the JobFlow has changed."""
        written = self.patched(job_flow, difference(job_flow.status, status))
        before, after = job_flow.status.state.phase, status.state.phase
        if before != after and after in {"Succeed", "Failed"}:
            lost = ", ".join([*status.failed_jobs, *status.terminated_jobs])
            if after == "Succeed":
                self._recorder.event(written, "Normal", after, "all Jobs are completed")
            else:
                self._recorder.event(written, "Warning", after, f"no further Job is created, because of {lost}")
        return written

    def _make_due(self, job_flow: JobFlow, flows: Sequence[Flow], foreign: Mapping[str, Job]) -> Sequence[str]:
        """Create the Jobs of these steps of a JobFlow; return the reasons of the first few failures.

        If a JobFlow of another namespace waits for its pass, stop early and continue in a later pass.
        """
        key, refusals, made = job_flow.metadata.key, list[str](), False
        for flow in flows:
            if made and self.worker.queue.others_wait(key):
                self.worker.queue.add_after(key, 0.0)
                return refusals[:_SHOWN] or [job_flow.status.state.message]
            if why := self._make(job_flow, flow, foreign.get(flow.name)):
                refusals.append(f"step {flow.name}: {why}")
                self._recorder.event(job_flow, "Warning", "CreationFailed", refusals[-1])
            else:
                made = True
        if refusals:
            self.worker.queue.add_after(key, BLOCKED_S)
        return refusals[:_SHOWN]

    def _make(self, job_flow: JobFlow, flow: Flow, foreign: Job | None) -> str:
        """Create the Job of a step; if this is not possible now, return the reason."""
        meta = job_flow.metadata
        name = job_name(job_flow, flow.name)
        template = self._templates.get(f"{meta.namespace}/{flow.name}")
        if template is None:
            return f"there is no JobTemplate {flow.name} in namespace {meta.namespace}; create it"
        manifest = job_manifest(job_flow, flow, template)
        try:
            job, new = (foreign, False) if foreign else find_or_make(self._client, JOBS, manifest)
        except Refused as error:
            return f"Job {name} is refused: {error.why}"
        if not owned_by(job.metadata, meta.uid):
            owner = job.metadata.controller
            if owner and (owner.kind, owner.name) == (JOB_FLOWS.kind, meta.name):
                raise Retry(f"Job {name} of an earlier JobFlow of this name still exists; it is being deleted")
            return f"Job {name} exists already and {owner_text(job.metadata)}; delete it, or rename the JobFlow"
        self._made.note(job)
        if new:
            self._recorder.event(job_flow, "Normal", "Created", f"made Job {name} of JobTemplate {flow.name}")
        else:  # the cache may omit it, if its namespace exceeds its memory limit; then its changes cause no events
            self.worker.queue.add_after(meta.key, BELIEVED_S)
        return ""

    def _delete(self, jobs: dict[str, Job]) -> None:
        """Delete completed Jobs."""
        for job in jobs.values():
            if not job.metadata.deletion_timestamp:
                delete(self._client, JOBS, job.metadata)
                self._made.drop(job.metadata.key)
                log.info("deleted", job=job.metadata.key, why="its JobFlow has succeeded")

"""One pass over a JobFlow: its status, then the Jobs that are due; and one over a JobTemplate: the list of its Jobs."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import structlog

from controller.caches import OwnWrites
from controller.flow.rules.manifest import job_manifest
from controller.flow.rules.status import status_of
from controller.flow.rules.steps import due
from controller.live import controller_key, delete, find_or_make, owned_by, owner_words, write_status
from controller.worker import Retry
from muster.api.kubernetes.meta import format_time
from muster.api.limits import TEMPLATE_JOBS
from muster.api.merge_diff import difference
from muster.api.volcano.batch import JOBS, Job
from muster.api.volcano.flow import (
    JOB_FLOWS,
    JOB_TEMPLATES,
    MADE_OF,
    Flow,
    JobFlow,
    JobFlowStatus,
    JobTemplate,
    JobTemplateStatus,
    job_name,
)
from muster.kube.client import Client
from muster.kube.errors import Forbidden, Invalid, NotFound
from muster.kube.events import Recorder
from muster.kube.store import Store
from muster.volcano.flows import check_steps

log = structlog.get_logger(__name__)
TEMPLATE_INDEX = "job-template"
"""Index of the store of Jobs: `namespace/name` of the JobTemplate that a JobFlow has made the Job of."""
BELIEVED_S = 30.0
"""Time for which a Job that was made counts while no cache shows it."""
BLOCKED_S = 10.0
"""Time until a JobFlow whose next Job cannot be made is tried again."""
_SHOWN = 3
"""Errors of a JobFlow that its event names."""


def template_keys(job: Job) -> list[str]:
    """The index function."""
    namespace, made_of = job.metadata.namespace, job.metadata.annotations.get(MADE_OF, "")
    mine = flow_key(job) is not None and made_of.startswith(f"{namespace}.")
    return [f"{namespace}/{made_of.removeprefix(f'{namespace}.')}"] if mine else []


def flow_key(job: Job) -> str | None:
    """The key of the JobFlow that controls a Job; None if none does."""
    return controller_key(job.metadata, JOB_FLOWS)


@dataclass(frozen=True, slots=True)
class Context:
    """The context of a pass.

    `requeue_after` asks for another pass over a key after a delay in seconds; `others_wait` is true while JobFlows of
    other namespaces wait.
    """

    client: Client
    recorder: Recorder
    flows: Store[JobFlow]
    templates: Store[JobTemplate]
    jobs: Store[Job]
    written: OwnWrites[JobFlow]
    made: OwnWrites[Job]
    requeue_after: Callable[[str, float], None]
    others_wait: Callable[[str], bool]
    wall_s: Callable[[], float]
    ended: dict[str, dict[str, Job]] = field(default_factory=dict)
    """Jobs that had ended when they went, by the key of their JobFlow and name, until its status has them."""


class Reconciler:
    """Passes over JobFlows; never two at once over the same one."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def process(self, key: str) -> None:
        """One pass. A JobFlow that is being deleted makes no Jobs; those that it has go with it."""
        job_flow = self._context.written.newest(key, self._context.flows.get(key))
        if job_flow is None:
            self._context.ended.pop(key, None)
            return
        errors = [] if job_flow.metadata.deletion_timestamp else [str(each) for each in check_steps(job_flow)]
        if errors:
            why = "; ".join(errors[:_SHOWN])
            self._context.recorder.event(job_flow, "Warning", "InvalidFlow", f"no Jobs are made: {why}")
            return
        there, foreign = self._jobs_of(job_flow)
        ended = self._ended_of(job_flow)
        jobs = {**ended, **there}
        now = format_time(self._context.wall_s())
        with suppress(NotFound):
            job_flow = self._write(job_flow, status_of(job_flow, jobs, frozenset(there), now))
            for job in ended.values():  # those alone: others may have ended meanwhile
                self._context.ended.get(key, {}).pop(job.metadata.name, None)
            if job_flow.status.state.phase == "Succeed" and job_flow.spec.job_retain_policy == "delete":
                self._delete(there)
                return
            self._make_due(job_flow, due(job_flow, jobs), foreign)

    def _jobs_of(self, job_flow: JobFlow) -> tuple[dict[str, Job], dict[str, Job]]:
        """The Jobs of the steps that exist; and those of others that have their names."""
        own: dict[str, Job] = {}
        foreign: dict[str, Job] = {}
        for flow in job_flow.spec.flows:
            key = f"{job_flow.metadata.namespace}/{job_name(job_flow, flow.name)}"
            job = self._context.made.newest(key, self._context.jobs.get(key))
            if job is not None:
                (own if owned_by(job.metadata, job_flow.metadata.uid) else foreign)[flow.name] = job
        return own, foreign

    def _ended_of(self, job_flow: JobFlow) -> dict[str, Job]:
        ended = self._context.ended.get(job_flow.metadata.key, {})
        found = {flow.name: ended.get(job_name(job_flow, flow.name)) for flow in job_flow.spec.flows}
        uid = job_flow.metadata.uid
        return {name: job for name, job in found.items() if job is not None and owned_by(job.metadata, uid)}

    def _write(self, job_flow: JobFlow, status: JobFlowStatus) -> JobFlow:
        """The JobFlow with this status, written if it differs. Conflict if it has changed."""
        patch = difference(job_flow.status, status)
        if not patch:
            return job_flow
        written = write_status(self._context.client, JOB_FLOWS, job_flow, patch)
        self._context.written.note(written)
        before, after = job_flow.status.state.phase, status.state.phase
        if before != after and after in {"Succeed", "Failed"}:
            lost = ", ".join([*status.failed_jobs, *status.terminated_jobs])
            if after == "Succeed":
                self._context.recorder.event(written, "Normal", after, "all Jobs are completed")
            else:
                self._context.recorder.event(written, "Warning", after, f"no further Job is made, as of {lost}")
        return written

    def _make_due(self, job_flow: JobFlow, flows: Sequence[Flow], foreign: Mapping[str, Job]) -> None:
        """Makes Jobs; JobFlows of other namespaces take turns with them."""
        key, blocked = job_flow.metadata.key, False
        for place, flow in enumerate(flows):
            if place and self._context.others_wait(key):
                self._context.requeue_after(key, 0.0)
                break
            blocked |= bool(self._make(job_flow, flow, foreign.get(flow.name)))
        if blocked:
            self._context.requeue_after(key, BLOCKED_S)

    def _make(self, job_flow: JobFlow, flow: Flow, foreign: Job | None) -> str:
        """Makes the Job of a step; returns why that cannot be done for now, which is told in an event."""
        why = self._try(job_flow, flow, foreign)
        if why:
            self._context.recorder.event(job_flow, "Warning", "CreationFailed", f"step {flow.name}: {why}")
        return why

    def _try(self, job_flow: JobFlow, flow: Flow, foreign: Job | None) -> str:
        meta = job_flow.metadata
        name = job_name(job_flow, flow.name)
        template = self._context.templates.get(f"{meta.namespace}/{flow.name}")
        if template is None:
            return f"there is no JobTemplate {flow.name} in namespace {meta.namespace}; create it"
        manifest = job_manifest(job_flow, flow, template)
        try:
            job, new = (foreign, False) if foreign else find_or_make(self._context.client, JOBS, manifest)
        except (Forbidden, Invalid) as error:
            return f"the API server refuses Job {name}: {error.message}"
        if not owned_by(job.metadata, meta.uid):
            owner = job.metadata.controller
            if owner and (owner.kind, owner.name) == (JOB_FLOWS.kind, meta.name):
                raise Retry(f"Job {name} of an earlier JobFlow of this name is still there; it is about to go")
            return f"Job {name} exists already and {owner_words(job.metadata)}; delete it, or rename the JobFlow"
        self._context.made.note(job)
        if new:
            self._context.recorder.event(job_flow, "Normal", "Created", f"made Job {name} of JobTemplate {flow.name}")
        else:  # the cache may leave it out, over the budget of its namespace: nobody tells of its changes then
            self._context.requeue_after(meta.key, BELIEVED_S)
        return ""

    def _delete(self, jobs: dict[str, Job]) -> None:
        """Deletes Jobs that are completed."""
        for job in jobs.values():
            if not job.metadata.deletion_timestamp:
                delete(self._context.client, JOBS, job.metadata)
                self._context.made.drop(job.metadata.key)
                log.info("deleted", job=job.metadata.key, why="its JobFlow has succeeded")


def write_list(context: Context, key: str) -> None:
    """One pass over a JobTemplate."""
    template = context.templates.get(key)
    if template is None or template.metadata.deletion_timestamp:
        return
    made = sorted(each.rpartition("/")[2] for each in context.jobs.keys_by_index(TEMPLATE_INDEX, key))
    wanted = JobTemplateStatus(job_depends_on_list=made[: TEMPLATE_JOBS.value])
    patch = difference(template.status, wanted)
    if patch:
        meta = template.metadata
        body = {"metadata": {"uid": meta.uid}, "status": patch}
        with suppress(NotFound):
            context.client.merge_patch(JOB_TEMPLATES, meta.name, body, meta.namespace, subresource="status")

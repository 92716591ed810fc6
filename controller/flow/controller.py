"""The controller of JobFlows and JobTemplates: its caches, handlers and workers."""

import time
from collections.abc import Callable
from typing import Any

from controller.caches import OwnWrites
from controller.flow.reconcile import BELIEVED_S, Context, Reconciler, flow_key, template_keys, write_list
from controller.flow.rules.steps import is_forgotten
from controller.worker import Worker
from muster.api.limits import STEPS
from muster.api.volcano.batch import FINISHED, Job
from muster.api.volcano.flow import JOB_FLOWS, JOB_TEMPLATES, JobFlow, JobTemplate
from muster.kube.budget import Budget
from muster.kube.client import Client
from muster.kube.events import Recorder
from muster.kube.reflector import Reflector
from muster.kube.store import Store

JOBS_S = 0.1
"""Delay of the pass after a change of a Job, so that one pass handles the changes of all Jobs of a JobFlow."""
LISTS_S = 1.0
"""Delay of the pass over a JobTemplate: its list is written once for many Jobs."""
STEP_INDEX = "step"
"""Index of the store of JobFlows: `namespace/name` of the JobTemplates of their steps."""


def _steps(job_flow: JobFlow) -> list[str]:
    """None of a JobFlow over the limit, as it makes no Jobs: its names would fill the memory beside the budget."""
    flows = job_flow.spec.flows
    return list({f"{job_flow.metadata.namespace}/{flow.name}" for flow in flows}) if len(flows) <= STEPS.value else []


class JobFlows:
    """Workers over `namespace/name` of JobFlows and of JobTemplates; `jobs` has the index of `reconcile`."""

    def __init__(
        self,
        client: Client,
        recorder: Recorder,
        jobs: Store[Job],
        *,
        threads: int = 1,
        monotonic_s: Callable[[], float] = time.monotonic,
        wall_s: Callable[[], float] = time.time,
    ) -> None:
        store = Store({STEP_INDEX: _steps}, packed=JobFlow)
        self._flows = Reflector(client, JOB_FLOWS, store=store, budget=Budget(JOB_FLOWS))
        self._templates = Reflector(
            client, JOB_TEMPLATES, store=Store(packed=JobTemplate), budget=Budget(JOB_TEMPLATES)
        )
        self.reflectors: dict[str, Reflector[Any]] = {"jobflows": self._flows, "jobtemplates": self._templates}
        self.handlers: list[tuple[Reflector[Any], Any]] = [
            (self._flows, self._flow_seen),
            (self._templates, self._template_seen),
        ]
        self.worker = Worker("jobflow", self.process, threads=threads, monotonic_s=monotonic_s)
        self.list_worker = Worker("jobtemplate", self.process_template, monotonic_s=monotonic_s)
        self._context = Context(
            client=client,
            recorder=recorder,
            flows=self._flows.store,
            templates=self._templates.store,
            jobs=jobs,
            written=OwnWrites[JobFlow](monotonic_s),
            made=OwnWrites[Job](monotonic_s, BELIEVED_S),
            requeue_after=self.worker.queue.add_after,
            others_wait=self.worker.queue.others_wait,
            wall_s=wall_s,
        )
        self._reconciler = Reconciler(self._context)

    def process(self, key: str) -> None:
        """One pass over one JobFlow."""
        self._reconciler.process(key)

    def process_template(self, key: str) -> None:
        """One pass over one JobTemplate."""
        write_list(self._context, key)

    def job_seen(self, old: Job | None, new: Job | None) -> None:
        """Queues the JobFlow of a Job that has changed, if it has one, and its JobTemplate if the Job came or went."""
        self._context.made.seen(old, new)
        for job in (old, new):
            key = flow_key(job) if job else None
            if job is None or key is None:
                continue
            gone = job is old and (new is None or new.metadata.uid != job.metadata.uid)
            if gone and job.status.state.phase in FINISHED:
                self._context.ended.setdefault(key, {})[job.metadata.name] = job
            self.worker.queue.add_after(key, JOBS_S)
        if old is None or new is None:
            for each in template_keys(new or old or Job()):
                self.list_worker.queue.add_after(each, LISTS_S)

    def needs(self, job: Job) -> bool:
        """True while the status of a Job's JobFlow does not have its end yet: without it the Job would be run again."""
        key = flow_key(job)
        job_flow = self._flows.store.get(key) if key else None
        return job_flow is not None and is_forgotten(job_flow, job)

    def _flow_seen(self, old: JobFlow | None, new: JobFlow | None) -> None:
        self._context.written.seen(old, new)
        changed = new or old
        if changed and (old is None or new is None or _asked(old) != _asked(new)):
            self.worker.queue.add(changed.metadata.key)

    def _template_seen(self, old: JobTemplate | None, new: JobTemplate | None) -> None:
        if new is None:
            return
        self.list_worker.queue.add_after(new.metadata.key, LISTS_S)
        if old is None or old.spec != new.spec:
            for job_flow in self._flows.store.by_index(STEP_INDEX, new.metadata.key):
                if job_flow.status.state.phase not in {"Succeed", "Failed"}:
                    self.worker.queue.add(job_flow.metadata.key)


def _asked(job_flow: JobFlow) -> tuple[Any, ...]:
    """The fields of a JobFlow that a pass depends on, its phase for the deletion of Jobs at the end."""
    meta = job_flow.metadata
    return meta.uid, meta.generation, meta.deletion_timestamp, job_flow.status.state.phase

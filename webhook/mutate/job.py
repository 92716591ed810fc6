"""Defaults of a Volcano Job, written for Volcano's clients: queue, scheduler, minimum and implied plugins.

Tasks get no defaults, and values from clients are not replaced: otherwise, a client that applies its manifest again
would find a difference. All code that reads a Job applies the same defaults itself, even if a client has written 0.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from muster.api import names
from muster.api.kubernetes.admission import AdmissionRequest
from muster.api.muster.pools import pool_of_scheduler
from muster.api.unchecked import mapping, value_at
from muster.api.volcano.batch import Job
from muster.volcano.plugins.registry import required
from muster.volcano.tasks import queue_of, scheduler_of, total_minimum
from webhook.config import ResourceGroup
from webhook.lookup import Lookups, QueueTreeView
from webhook.mutate.creator import set_changed_by
from webhook.mutate.optin import set_queue
from webhook.mutate.resourcegroup import keep_record, record
from webhook.objects.canonical import same
from webhook.objects.pools import scheduler_in
from webhook.patch import Patch, Why
from webhook.review import Handler, MalformedError, ReviewVerdict, generic
from webhook.senders import is_controller

JSON = dict[str, Any]
_DEFAULT = Why("left out", "default")
_IMPLIED = Why("another plugin needs it", "spec.plugins")
_CLASS = ("spec", "priorityClassName")
_LAST_APPLIED = ("metadata", "annotations", names.LAST_APPLIED)


def reviewer(lookups: Lookups, *, marks: bool = False, groups: Sequence[ResourceGroup] = ()) -> Handler:
    """Return the handler for Volcano Jobs, which writes their defaults and the settings of their pods.

    The settings of pods consist of the settings of resource `groups` and, with `marks`, of the markers. The queue may
    be the namespace's, and the scheduler may be the queue's node pool's.

    On UPDATE, the handler only restores values that were added at creation and that `kubectl apply` or `replace` has
    omitted. The recorded settings of pods do not change. A malformed object passes unchanged, because the API server's
    schema check names every wrong field afterwards.
    """

    def review(request: AdmissionRequest) -> ReviewVerdict:
        try:
            document = generic(request.object)
            job = _read_job(document)
            old = generic(request.old_object) if request.operation == "UPDATE" else None
            if old is not None and job.metadata.deletion_timestamp:
                return ReviewVerdict()
            patch = _completed(job, document, old, request.namespace, groups, marks=marks)
            queue = set_queue(job, old, request.namespace, lookups.namespaces, patch)
            _set_scheduler(job, old, queue, lookups.queues, patch)
            if old is not None and value_at(old, _CLASS) != value_at(document, _CLASS):
                _note_user(request, job, patch)
        except (MalformedError, msgspec.ValidationError):
            return ReviewVerdict()
        return ReviewVerdict.admitted_with(patch)

    return review


def _note_user(request: AdmissionRequest, job: Job, patch: Patch) -> None:
    """Record the user who changes a Job's PriorityClass.

    For the history, the controller copies this record to the PodGroup.
    """
    user = request.user_info.username
    if user and not is_controller(request, owned=job.metadata.controller is not None):
        set_changed_by(patch, user)


def _read_job(document: JSON) -> Job:
    """Return the Job as the client has written it, without the recorded settings of its pods."""
    annotations = mapping(value_at(document, ("metadata", "annotations")))
    own = {key: value for key, value in annotations.items() if key != names.GROUPED_TEMPLATES}
    return msgspec.convert({**document, "metadata": {**mapping(document.get("metadata")), "annotations": own}}, Job)


def _completed(
    job: Job, document: JSON, old: JSON | None, namespace: str, groups: Sequence[ResourceGroup], *, marks: bool
) -> Patch:
    """Return all additions to a Job; `old` is the Job that an update replaces."""
    patch = Patch(document)
    if old is None or not same(old.get("spec"), document.get("spec")):
        _fill_in(job, document, old, patch)
    if old is None:
        record(job, document, groups, namespace, patch, marks=marks)
    else:
        keep_record(document, old, patch)
    return patch


def _fill_in(job: Job, document: JSON, old: JSON | None, patch: Patch) -> None:
    """Set values that the client has left out; in an update, only restore values that were set at creation."""
    spec = job.spec
    if not spec.queue and _may_fill(old, "queue"):
        patch.set("spec", "queue", value=queue_of(spec), why=_DEFAULT)
    if not spec.scheduler_name and old is not None and _may_fill(old, "schedulerName"):
        patch.set("spec", "schedulerName", value=scheduler_of(spec), why=_DEFAULT)  # a new Job: its pool's scheduler
    total = total_minimum(spec)
    if _leaves_minimum(document, old, total):
        patch.set("spec", "minAvailable", value=total, why=Why("the sum over the tasks", "default"))
    for plugin in required(spec.plugins):
        if _may_fill(old, "plugins", plugin):
            patch.set("spec", "plugins", plugin, value=[], why=_IMPLIED)


def _may_fill(old: JSON | None, *path: str) -> bool:
    return old is None or value_at(old, ("spec", *path)) is not None


def _set_scheduler(job: Job, old: JSON | None, queue: str, queues: QueueTreeView, patch: Patch) -> None:
    """Write the scheduler of the queue's node pool into the Job.

    In an update that omits the pool's scheduler, the old scheduler is restored.
    """
    wanted, was = scheduler_of(job.spec), value_at(old, ("spec", "schedulerName"))
    if old is None:
        wanted = scheduler_in(wanted, queue, queues)
    else:
        of_a_pool = wanted in names.SCHEDULERS and isinstance(was, str) and pool_of_scheduler(was)
        wanted = was if of_a_pool else job.spec.scheduler_name
    if wanted != job.spec.scheduler_name:
        why = (
            _DEFAULT
            if wanted in names.SCHEDULERS
            else Why("this scheduler uses the nodes of the pool", f"queue {queue}")
        )
        patch.set("spec", "schedulerName", value=wanted, why=why)


def _leaves_minimum(document: JSON, old: JSON | None, total: int) -> bool:
    """Return True if the Job's minimum must be filled in, so that Volcano's clients can read it.

    A minimum of 0 stands for the sum over the tasks, and is not replaced. If no client has set the minimum and it was
    equal to this sum, it is updated when the gang is scaled.
    """
    given = value_at(document, ("spec", "minAvailable"))
    if given is None or given == total:
        return given is None
    if old is None:
        return False
    kept = given == value_at(old, ("spec", "minAvailable")) and not _sets_minimum(document)
    return kept and given == total_minimum(_read_job(old).spec)


def _sets_minimum(document: JSON) -> bool:
    """Return True if a client has set the minimum, according to managedFields or the manifest of `kubectl apply`."""
    managers = value_at(document, ("metadata", "managedFields"))
    if isinstance(managers, list) and any(
        value_at(each, ("fieldsV1", "f:spec", "f:minAvailable")) is not None for each in managers
    ):
        return True
    try:
        applied = msgspec.json.decode(value_at(document, _LAST_APPLIED) or "null")
    except (TypeError, msgspec.DecodeError):
        return False
    return value_at(applied, ("spec", "minAvailable")) is not None

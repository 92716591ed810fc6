"""Which action an event leads to: task policies before job policies, first match wins."""

from typing import NamedTuple

from controller.job.rules.machine import Action
from controller.job.rules.request import COMMAND_ISSUED, OUT_OF_SYNC, POD_PENDING, POD_RUNNING, Request
from muster.api.volcano.batch import Job, LifecyclePolicy
from muster.resources.duration import parse_duration_s

INTERNAL = frozenset({OUT_OF_SYNC, COMMAND_ISSUED, POD_RUNNING})
ANY = "*"


class Match(NamedTuple):
    """The action of an event, and how long to wait before it."""

    action: str
    delay_s: float = 0.0


SYNC = Match(Action.SYNC_JOB)


def match(job: Job, request: Request) -> Match:
    """The action for `request`, given the Job as it is now.

    An event of an older version of the Job, or of another Job of the same name, is a mere sync: what it tells has been
    dealt with.
    """
    if request.action:
        return Match(request.action)
    if request.event in INTERNAL:
        return SYNC
    if request.job_uid and request.job_uid != job.metadata.uid:
        return SYNC
    if request.job_version is not None and request.job_version < job.status.version:
        return SYNC
    own = next((task.policies for task in job.spec.tasks if request.task and task.name == request.task), [])
    for policy in (*own, *job.spec.policies):
        if matches(policy, request):
            return Match(policy.action, parse_duration_s(policy.timeout) if policy.timeout else 0.0)
    return SYNC


def matches(policy: LifecyclePolicy, request: Request) -> bool:
    """Whether this policy is about this event. A pod that is merely pending counts only after a timeout."""
    events = policy.all_events
    named = request.event in events or (ANY in events and request.event != "")
    if named and (request.event != POD_PENDING or policy.timeout):
        return True
    return bool(policy.exit_code) and policy.exit_code in request.exit_codes

"""Gangs are let in while the ResourceQuotas of their namespace leave room, by Volcano's plugin `resourcequota`.

Without it, a gang that is let in has some of its pods refused by the API server, and the others wait for nothing.
"""

from collections import Counter, defaultdict
from contextlib import suppress

from extender.planner import reasons
from extender.planner.framework.answers import EnqueueVote
from extender.planner.framework.registry import PlainPlugin
from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView
from muster.api.kubernetes.quota import ResourceQuota
from muster.resources.quantity import parse
from muster.resources.vector import MILLI, PODS, Vector, vector

_COUNT_PODS = "count/pods"
_REQUESTS = "requests."


class QuotaRoom(PlainPlugin):
    """Compares what a gang needs at least with what each quota of its namespace has left.

    Gangs that were let in and have no pods yet count too. Quotas with scopes are about some pods only, and what cannot
    be read limits nothing here: both are left to the API server.
    """

    name = "resourcequota"

    def on_session_open(self, session: Session) -> None:
        """Registers the vote, and counts the gangs that are let in during the cycle."""
        let_in: dict[str, Counter[str]] = defaultdict(Counter)
        if session.snapshot.quotas:
            for gang in session.snapshot.gangs:
                if gang.group.status.phase == "Inqueue" and not gang.pods:
                    let_in[gang.group.metadata.namespace].update(needed(gang))

        def count(gang: GangView) -> None:
            let_in[gang.group.metadata.namespace].update(needed(gang))

        session.hooks.job_enqueueable.add(lambda gang: _vote(session, gang, let_in[gang.group.metadata.namespace]))
        session.hooks.job_enqueued.add(count)


def needed(gang: GangView) -> Vector:
    """What the PodGroup says that it needs, by the names that it uses; and the number of its pods."""
    amounts: Vector = {}
    with suppress(ValueError):
        amounts = vector(gang.group.spec.min_resources or {})
    return {PODS: gang.min_member, **amounts}


def _vote(session: Session, gang: GangView, let_in: Counter[str]) -> EnqueueVote | None:
    wanted: Vector = {}
    for quota in session.snapshot.quotas.get(gang.group.metadata.namespace, ()):
        wanted = wanted or needed(gang)
        lacking = _lacking(quota, wanted, let_in)
        if lacking:
            message = reasons.queues.resource_quota(quota=quota.metadata.name, resource=lacking)
            return EnqueueVote(admit=False, reason=reasons.queues.EXCEEDED, message=message)
    return None


def _lacking(quota: ResourceQuota, wanted: Vector, let_in: Counter[str]) -> str:
    """The first limit, by the quota's name for it, that has too little left; empty if all have enough."""
    if quota.scoped:
        return ""
    for key, limit in quota.status.hard.items():
        resource = key if key in wanted else PODS if key == _COUNT_PODS else key.removeprefix(_REQUESTS)
        if not wanted.get(resource):
            continue
        with suppress(ValueError):
            milli = resource.removeprefix("limits.") in MILLI
            left = parse(limit, milli=milli) - parse(quota.status.used.get(key, 0), milli=milli)
            if let_in[resource] + wanted[resource] > left:
                return key
    return ""

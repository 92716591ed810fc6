"""Messages about refusals by queues and quotas, about the order of a queue's gangs, and about reservations."""

from collections.abc import Mapping, Sequence

from muster.api.grammar import also, be, listed, many, some
from muster.api.kubernetes.meta import format_time
from muster.api.muster.reason import Reason, Sentence, constant, worded
from muster.api.muster.usage import Period
from muster.api.volcano import scheduling
from muster.resources.vector import amount_text
from muster.volcano.queuelimits import UsageBudget

_HOUR_S = 3600
RESERVED = "reservation"
"""Code of the reason for a reservation; its parameter `aside` says why the reservation binds only its own queue."""
OVER_CAPABILITY = scheduling.OVER_CAPABILITY
GUARANTEED = "KeptForGuarantees"
OVER_DESERVED = "QueueOverDeserved"
OVER_USER_LIMIT = "UserOverLimit"
OVER_WINDOW = "QueueOverWindow"
OVER_BUDGET = "QueueOverBudget"
NOT_FOUND = "QueueNotFound"
NOT_OPEN = "QueueNotOpen"
STRICT_ORDER = "StrictOrder"
NOT_FOR_NAMESPACE = "QueueNotForNamespace"
OF_OTHER_POOL = "QueueOfOtherPool"
"""Reasons for a condition in the gang's PodGroup, as CamelCase words."""

ROOT = constant("queue-root", "queue 'root' contains other queues and accepts no gangs")
missing = Sentence("queue-missing", "queue {queue!r} does not exist")
closed = Sentence("queue-closed", "queue {queue!r} is {state}")
not_growing = Sentence(
    "queue-not-growing",
    "queue {queue!r} is {state}: pods that end are replaced, but no workload gets more than the {size} that it had",
)
not_for_namespace = Sentence(
    "queue-not-for-namespace", "namespace {namespace} is not allowed to use queue {queue!r}: {why}"
)
of_other_pool = Sentence(
    "queue-of-other-pool", "{why}: a gang has the nodes of one pool; create its workload again in a queue of its pool"
)
behind = Sentence(
    "queue-behind", "queue {queue!r} starts its gangs strictly in order, and {head} before it waits for room"
)
unreadable_capability = Sentence(
    "queue-unreadable-capability", "the capability of queue {queue} cannot be read: {error}"
)
first_waits = "the first gang of the queue waits: {reason}".format
"""Reason for a Queue's status. Users of other namespaces may be allowed to read the queue, so only the
gang's PodGroup contains the gang's name."""

_REFUSALS = {
    OVER_CAPABILITY: "queue {queue} may use {limit} (capability) and uses {used}: {asked} more do not fit; wait until "
    "gangs of the queue end, or raise its capability",
    GUARANTEED: "queue {queue} has {limit}, of which {used} are used or guaranteed to other queues: "
    "{asked} more do not fit; wait until gangs end, or lower a guarantee",
    OVER_DESERVED: "queue {queue} deserves {limit}, of which gangs that cannot be evicted use {used}: {asked} more "
    "do not fit; make the gang preemptable, or raise what is deserved",
}


_NEVER = {
    OVER_CAPABILITY: "queue {queue} may use {limit} (capability), and {asked} are requested at once, which never fit; "
    "request less, or raise its capability",
    GUARANTEED: "queue {queue} has {limit}, and {asked} are requested at once, which never fit; request less",
}
"""Messages about requests that would exceed a limit even if no other gang ran, so that waiting does not help."""
_LIMITS = frozenset({"queue-refusal", "queue-over-user-limit"})
"""Codes of refusals due to limits that only an administrator can change."""


@worded("queue-refusal")
def refusal(reason: str, queue: str, resource: str, *, limit: int, used: int, asked: int) -> str:
    """The queue rejects a gang's requests; amounts are in milli-CPU or base units."""
    amounts = {"limit": limit, "used": used, "asked": asked}
    words = {name: f"{amount_text(resource, amount)} {resource}" for name, amount in amounts.items()}
    text = _NEVER.get(reason, _REFUSALS[reason]) if asked > limit else _REFUSALS[reason]
    return text.format(queue=queue, **words)


def never_fits(reason: Reason) -> bool:
    """Return True if the requests exceed the whole limit of the queue, so that waiting does not help."""
    limit, asked = (reason.params.get(name) for name in ("limit", "asked"))
    return reason.code in _LIMITS and isinstance(limit, int) and isinstance(asked, int) and asked > limit


@worded("queue-over-user-limit")
def over_user_limit(queue: str, resource: str, *, user: str, limit: int, used: int, asked: int) -> str:
    """The gang's creator already uses as much as the queue allows for each user."""
    kind, _, namespace = user.rpartition(":")
    accounts = f"namespace {namespace} (its service accounts, and workloads without a known creator, count as one user)"
    who = accounts if kind == "system:serviceaccount" else f"user {user}"
    most, there, more = (amount_text(resource, amount) for amount in (limit, used, asked))
    end = (
        "the gang starts when other gangs of that user end"
        if asked <= limit
        else "the request never fits, so request less"
    )
    return (
        f"{who} holds {there} of {most} {resource} that queue {queue} allows per user; {more} more are requested; {end}"
    )


@worded("queue-over-window")
def over_window(queue: str, resource: str, *, until: float, limit: int, used: int, asked: int) -> str:
    """A time window is active during which the queue may use less."""
    most, there, more = (amount_text(resource, amount) for amount in (limit, used, asked))
    return (
        f"queue {queue} may use {most} {resource} until {format_time(until)} (limit-windows) and uses {there}: {more} "
        f"more do not fit; it starts then{', or when gangs of the queue end' if asked <= limit else ''}"
    )


def over_budget(queue: str, budget: UsageBudget, *, until: float) -> Reason:
    """The queue's enforced budget is used up until its period ends."""
    return _over_budget(
        queue=queue, budget=budget_text(budget), now=NOW[budget.period], resource=budget.resource,
        until=format_time(until),
    )  # fmt: skip


_over_budget = Sentence(
    "queue-over-budget",
    "queue {queue} has used its budget of {budget} {now}, and starts no gangs that request {resource} before {until}; "
    "running gangs continue",
)


budget_left_out = Sentence(
    "queue-budget-left-out",
    "the usage of queue {queue} is not known, because not all usage fits into ConfigMap muster-usage; the queue "
    "starts no gangs that request {resource}, for which it has a budget, until an administrator sets budgets "
    "for fewer queues or resources",
)
BUDGET_NEAR = "BudgetNearlyUsed"
BUDGET_USED = "BudgetUsed"
BUDGET_UNKNOWN = "BudgetNotKnown"
"""Reasons of Events about a queue, as CamelCase words."""


NOW: Mapping[Period, str] = {"month": "this month", "week": "this week", "day": "today"}


def budget_step(
    reason: str, queue: str, budget: UsageBudget | None, *, ratio: float, enforced: bool, left_out: bool = False
) -> str:
    """Return the message of an Event about a queue's budget; a `budget` of None means that the usage is unknown."""
    if budget is None and left_out:
        waits = "its gangs wait" if enforced else "its budget is not checked"
        return f"the usage of queue {queue} is missing, because not all usage fits into ConfigMap muster-usage; {waits}"
    if budget is None:
        return (
            f"the usage of queue {queue} is not known, so its budget is not enforced; check that the "
            "history recorder runs (ConfigMap muster-usage)"
        )
    used = f"queue {queue} has used {ratio:.0%} of its budget of {budget.resource} {NOW[budget.period]}"
    if reason == BUDGET_NEAR:
        return used
    return f"{used}; {'no more gangs that request it start' if enforced else 'its gangs still start'}"


def budget_text(budget: UsageBudget) -> str:
    """Return a budget in unit hours, such as `10000 h of nvidia.com/gpu` or `0.1 h of cpu`."""
    return f"{amount_text(budget.resource, round(budget.most / _HOUR_S))} h of {budget.resource}"


@worded("queue-no-nodes-for")
def no_nodes_for(queue: str, resource: str, *, limit: int, used: int, asked: int) -> str:
    """No nodes are requested from an autoscaler, because the queue is not allowed to use more resources."""
    most, there, more = (amount_text(resource, amount) for amount in (limit, used, asked))
    return f"queue {queue} may use {most} {resource} (capability), uses {there}, and {more} more are requested"


_NOTHING = "nothing is reclaimed for the gang, though its queue has less than it deserves:"
NOBODY_ABOVE = constant(
    "reclaim-nobody-above",
    f"{_NOTHING} no other queue has more than it deserves; the gang starts when gangs end, or if others deserve less",
)
OF_OTHERS = constant(
    "reclaim-of-others",
    f"{_NOTHING} the queues that have more than they deserve are not reclaimable, or their gangs are not preemptable; "
    "spec.reclaimable of the queues and volcano.sh/preemptable of the gangs say so",
)
PROTECTED = constant(
    "reclaim-protected",
    f"{_NOTHING} the gangs of queues that have more than they deserve are protected for now, such as by their minimum "
    "runtime; the planner tries again",
)
OVER_FAIR = constant(
    "reclaim-over-fair",
    f"{_NOTHING} with it the queue would have more than its fair share of a resource of which no queue deserves any; "
    "the gang starts when gangs end, or if its queue has more weight",
)
NOT_ENOUGH = constant(
    "reclaim-not-enough",
    f"{_NOTHING} a queue loses gangs, or pods above their minimum, only while it has more than it deserves and keeps "
    "what it is guaranteed; evicting these frees too little capacity; smaller or fewer pods may fit, or it starts "
    "when gangs end",
)
"""Messages about the rule that prevents reclaim for a gang, and about changes that would help. The messages contain no
names of gangs and no amounts, so that they rarely change."""


EXCEEDED = "QuotaExceeded"
OVERCOMMITTED = "Overcommitted"
"""Reasons for a condition in the gang's PodGroup, as CamelCase words."""

resource_quota = Sentence(
    "resource-quota", "ResourceQuota {quota} of the namespace leaves too little {resource} for the gang to start"
)
overcommitted = Sentence(
    "queue-overcommitted",
    "the gangs admitted earlier need all {resource} that admission may promise, {factor:g} times the capacity of the "
    "nodes (overcommit-factor); the gang is admitted when some of these gangs have ended",
)


_OWN = "only gangs of its own queue must leave these nodes free, "
FOR_ITS_OWN = constant("reservation-for-its-own", f"{_OWN}as it waits for pods of that queue")
OVER_SHARE = constant("reservation-over-share", f"{_OWN}as it would have more than its fair share")
"""Reasons why a reservation binds only its own queue."""
expired = Sentence("reservation-expired", _OWN + "for a while, as all queues have done so for {after_s:g} s")
OVER = constant(
    "reservation-over",
    "nothing is reserved any more: the gang is not the first of its queue, or the nodes do not accept it",
)


def expected(at: float | None) -> str:
    """The time at which a gang should start on reserved nodes."""
    return "at a time that is not known" if at is None else f"expected at {format_time(at)}"


def reserved(
    nodes: Sequence[str], at: float | None, ending: Sequence[str], patience_s: float, aside: Reason, *, named: bool
) -> Reason:
    """Nodes are reserved for a gang. If the reservation binds only the gang's own queue, `aside` is the reason.

    With `named`, the message lists the names of the workloads that are expected to end on these nodes.

    Without `named`, the stored reason contains only the number of these workloads, because users can read stored
    reasons.
    """
    owners = listed(ending) if named else many(len(ending), "workload")
    made = _reserved(list(nodes[:3]), len(nodes), owners, len(ending), patience_s, aside)
    return made if at is None else made.given(at=at)  # a merge patch would remove a field with the value null


@worded(RESERVED)
def _reserved(
    nodes: Sequence[str], count: int, owners: str, ending: int, patience_s: float, aside: Reason,
    at: float | None = None, when: str = "",
) -> str:  # fmt: skip
    begins = f"expected {when}" if when else expected(at)
    what = f"reserved: {many(count, 'node')}, {some(nodes, count)}, {begins}"
    if at is None:
        why = f"because it has waited for more than {patience_s:g} s and no pod there declares how long it runs"
        return also(f"{what}; what becomes free there is reserved for it, {why}", str(aside))
    who = f", because {owners} {be(ending)} expected to have ended there" if ending else ""
    return also(f"{what}{who}", str(aside))


@worded("reservation-in-the-way")
def in_the_way(reservations: Sequence[tuple[Reason | str, Sequence[str], float | None]]) -> str:
    """Reservations keep a gang from nodes with enough capacity; each is given as gang, nodes and expected start."""
    parts = [f"the reservation of {gang} on {listed(nodes)}, {expected(at)}" for gang, nodes, at in reservations]
    return f"the gang would run into {' and '.join(parts)}"

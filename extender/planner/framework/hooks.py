"""Every hook, as data, and one aggregation per rule.

The hooks and their rules are KAI-Scheduler's (framework/session_plugins.go), under their names in snake case; letting
gangs in, which KAI-Scheduler does not know, has Volcano's.
Predicates and scores are functions of a pod class that answer for all nodes at once; `per_node` and `per_node_score`
of the session lift ordinary functions.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muster.api.kubernetes.devices import DEVICE_CLASS_RESOURCE

Hook = Callable[..., Any]


class Rule(Enum):
    """How the answers of several plugins become one."""

    FIRST_NON_ZERO = "the first comparison that is not 0 decides"
    FIRST_ERROR = "the first refusal decides"
    SUM = "scores add up"
    FIRST_OPINION = "the first plugin that has an opinion decides"
    ALL_AGREE = "every plugin must agree; nobody registered means yes"
    FIRST_REGISTERED = "only the plugin that registered first is asked"
    REFINE = "each plugin's node sets are fed to the next"
    MERGE = "maps are merged, the last plugin wins"
    CALL_ALL = "every plugin is told"


HOOKS: dict[str, Rule] = {
    # orders: (left, right) -> negative if left comes first
    "queue_order": Rule.FIRST_NON_ZERO,  # gangs of different queues
    "job_order": Rule.FIRST_NON_ZERO,  # gangs
    "pod_set_order": Rule.FIRST_NON_ZERO,  # pod sets of one gang
    "sub_group_set_order": Rule.FIRST_NON_ZERO,  # sub-groups of one pod set
    "task_order": Rule.FIRST_NON_ZERO,  # pods of one pod set
    # nodes: pre_predicate(gang, class) -> reason or ""; predicate(class) -> causes, by the node alone;
    # neighbour_predicate(class) -> causes, by the pods that are there now (None: they cannot matter);
    # is_task_allocation_on_node_over_capacity(gang, class) -> causes, or None where the gang may be anywhere;
    # node_pre_order(class, columns), told before these nodes are scored; node_order(class) -> scores
    "pre_predicate": Rule.FIRST_ERROR,
    "predicate": Rule.FIRST_ERROR,
    "neighbour_predicate": Rule.FIRST_ERROR,
    "is_task_allocation_on_node_over_capacity": Rule.FIRST_REGISTERED,
    "node_pre_order": Rule.CALL_ALL,
    "node_order": Rule.SUM,
    # subset_nodes(node set, gang, part of it) -> node sets within it, the best one first
    "subset_nodes": Rule.REFINE,
    # gpu_order(class, column of a node, thousandths of each GPU that shares use) -> scores by GPU, for pods that share
    "gpu_order": Rule.SUM,
    # queues: (gang, amounts that it would get) -> QueueRefusal or None
    "is_job_over_queue_capacity": Rule.FIRST_REGISTERED,
    "is_non_preemptible_job_over_queue_quota": Rule.FIRST_REGISTERED,
    # can_reclaim_resources(gang, amounts) -> bool; ..._victim_filter(gang, victim) -> bool, both of them gangs;
    # ..._scenario_validator(scenario) -> bool; get_queue_...(name of a queue) -> amounts;
    # on_job_solution_start(gang), told before a search for what it may reclaim
    "can_reclaim_resources": Rule.FIRST_REGISTERED,
    "on_job_solution_start": Rule.CALL_ALL,
    "reclaim_victim_filter": Rule.ALL_AGREE,
    "reclaim_scenario_validator": Rule.ALL_AGREE,
    "preempt_victim_filter": Rule.ALL_AGREE,
    "preempt_scenario_validator": Rule.ALL_AGREE,
    "get_queue_allocated_resources": Rule.FIRST_REGISTERED,
    "get_queue_deserved_resources": Rule.FIRST_REGISTERED,
    "get_queue_fair_share": Rule.FIRST_REGISTERED,
    # letting gangs in: job_enqueueable(gang) -> EnqueueVote or None; job_enqueued(gang)
    "job_enqueueable": Rule.FIRST_OPINION,
    "job_enqueued": Rule.CALL_ALL,
    # life of a gang in a cycle: job_ready(gang) -> bool; pre_job_allocation(gang); allocated(operation) and
    # deallocated(operation), evicted(operation) and unevicted(operation), also for what is rolled back
    "job_ready": Rule.ALL_AGREE,
    "pre_job_allocation": Rule.CALL_ALL,
    "allocated": Rule.CALL_ALL,
    "deallocated": Rule.CALL_ALL,
    "evicted": Rule.CALL_ALL,
    "unevicted": Rule.CALL_ALL,
    # for the verbs and the pages: (pod, node) -> annotations of the binding; () -> name -> function without arguments
    "bind_request_mutate": Rule.MERGE,
    "http_handler": Rule.MERGE,
}
"""The hooks that something asks."""


def first_non_zero(fns: Iterable[Hook], *args: object) -> int:
    """The first comparison that is not 0."""
    for fn in fns:  # no generator: sorting ten thousand gangs asks this a quarter of a million times
        if result := fn(*args):
            return int(result)
    return 0


def first_error(fns: Iterable[Hook], *args: object) -> Any:
    """The first refusal; element by element where the answers are arrays of cause codes, 0 meaning "passes"."""
    answer: Any = None
    for fn in fns:
        result = fn(*args)
        if not isinstance(result, np.ndarray):
            if result:
                return result
        elif answer is None:
            answer = result
        else:
            answer = np.where(answer == 0, result, answer)
    return answer


def first_opinion(fns: Iterable[Hook], *args: object) -> Any:
    """The first answer that is not None; None if nobody has an opinion."""
    return next((result for fn in fns if (result := fn(*args)) is not None), None)


def total(fns: Iterable[Hook], *args: object) -> Any:
    """The sum of the scores; 0 if nobody scores."""
    return sum((fn(*args) for fn in fns), start=0)


def all_agree(fns: Iterable[Hook], *args: object) -> bool:
    """Whether every plugin agrees; one that does not is enough, so that each can only forbid."""
    return all(fn(*args) for fn in fns)


def first_registered(fns: Sequence[Hook], *args: object) -> Any:
    """The answer of the plugin that registered first; None if nobody did."""
    return fns[0](*args) if fns else None


def refine(fns: Iterable[Hook], node_sets: Iterable[Any], *args: object) -> Iterable[Any]:
    """Every plugin splits every set that the one before it left; only as far as somebody looks at them."""
    for fn in fns:
        node_sets = _refined(fn, node_sets, *args)
    return node_sets


def _refined(fn: Hook, node_sets: Iterable[Any], *args: object) -> Iterator[Any]:
    for node_set in node_sets:
        yield from fn(node_set, *args)


def merge(fns: Iterable[Hook], *args: object) -> dict[str, Any]:
    """All maps as one; where two plugins use one key, the one that registered later wins."""
    result: dict[str, Any] = {}
    for fn in fns:
        result |= fn(*args)
    return result


def call_all(fns: Iterable[Hook], *args: object) -> None:
    """Tells every plugin; there is no answer."""
    for fn in fns:
        fn(*args)


AGGREGATES: dict[Rule, Callable[..., Any]] = {
    Rule.FIRST_NON_ZERO: first_non_zero,
    Rule.FIRST_ERROR: first_error,
    Rule.FIRST_OPINION: first_opinion,
    Rule.SUM: total,
    Rule.ALL_AGREE: all_agree,
    Rule.FIRST_REGISTERED: first_registered,
    Rule.REFINE: refine,
    Rule.MERGE: merge,
    Rule.CALL_ALL: call_all,
}
AGGREGATE_OF: dict[str, Callable[..., Any]] = {hook: AGGREGATES[rule] for hook, rule in HOOKS.items()}
"""The same by hook."""


MAX_CAUSES = 30_000
"""Words name claims and labels, so there can be many; the codes are 16 bits wide."""
OTHER_CAUSES = "refused for a reason that is not told apart any more (restart the extender to see it)"


class Causes:
    """Why a node does not take a pod: small integer codes ↔ words. Code 0 means that it does."""

    def __init__(self) -> None:
        self.words: list[str] = ["fits"]
        self._codes: dict[str, int] = {"": 0}

    def code(self, words: str) -> int:
        """The code of these words; new words get a new code."""
        code = self._codes.get(words)
        if code is None:
            if len(self.words) > MAX_CAUSES and words != OTHER_CAUSES:
                return self.code(OTHER_CAUSES)
            code = self._codes[words] = len(self.words)
            self.words.append(words)
        return code


Codes = NDArray[np.int16]


GPU_PARTS = "no GPU with enough room"
"""The words for a node whose GPUs have enough room together, and none of them for the pod."""


def scarcity(resource: str) -> str:
    """The words for a node that has too little of this resource."""
    if resource.startswith(DEVICE_CLASS_RESOURCE):
        return f"too few devices of class {resource.removeprefix(DEVICE_CLASS_RESOURCE)}"
    return "too many pods" if resource == "pods" else f"too little {resource}"

"""Reasons why the extender rejects a call of kube-scheduler, as one enum for kube-scheduler, users and metrics."""

from enum import StrEnum


class CallResult(StrEnum):
    """Outcome of a filter or bind call, used as a label of metrics."""

    PASSED = "passed"
    REJECTED = "rejected"
    ERROR = "error"


class VerbReason(StrEnum):
    """Reason for rejecting a filter or bind call; the value is the text that kube-scheduler receives.

    The texts are constants: a text that changes between calls would make kube-scheduler re-queue the pod at once, again
    and again. After an error, kube-scheduler tries again by itself. After a rejection, kube-scheduler tries again only
    when the cluster changes. Therefore the extender rejects a call only if the call cannot succeed before the cluster
    changes.
    """

    NOT_LEADING = "this Muster extender does not lead (kube-scheduler tries again)"
    NOT_SYNCED = "Muster's caches are not filled yet (kube-scheduler tries again)"
    NOT_SEEN = "Muster has not seen this pod or its placement yet (kube-scheduler tries again)"
    BARRIER_TIMEOUT = "not all members of the gang arrived in time (kube-scheduler tries again)"
    PLACEMENT_OVER = "the gang's placement changed (kube-scheduler tries again)"
    WRONG_NODE = "the gang's placement names another node for this pod (kube-scheduler tries again)"
    NOT_OURS = "Muster binds only pods of its own schedulers, and pods that carry both of its marker resources"
    NOT_ASKED = "Muster's filter has not accepted this node for the pod (kube-scheduler tries again)"
    SLOT_TAKEN = "another pod has this slot of the gang (kube-scheduler tries again)"
    QUEUE_FULL_NOW = "the pod's queue has become full in the meantime (kube-scheduler tries again)"
    ROOM_TAKEN = "the free capacity of this node has gone to other pods in the meantime (kube-scheduler tries again)"
    BIND_FAILED = "the API server did not confirm the binding (kube-scheduler tries again)"
    OTHER_POOL = "the pod's scheduler belongs to another node pool, whose own extender places the pod"
    MALFORMED = "Muster could not read the request (see the extender's log)"
    INTERNAL = "Muster's extender failed, see its log (kube-scheduler tries again)"

    WAITS_FOR_GANG = "the gang has no placement yet (kubectl describe of its owner shows why)"
    NOT_PLANNED_HERE = "the gang's placement names another node"
    HELD_BY_GANG = "the room is taken by gangs that are starting"
    KEPT_FOR_GANG = "the room is reserved for the first waiting gang of a queue"
    SUSPECT = "the nodes with room are suspect (kubectl describe node shows why; see docs/faults.md)"
    QUEUE_NOT_FOR_NAMESPACE = (
        "the pod's queue is not for its namespace (muster queue list shows the namespaces of each queue)"
    )
    QUEUE_NOT_OPEN = "the pod's queue is Closing or Closed (muster queue list shows which are open)"
    QUEUE_OF_OTHER_POOL = "the pod's queue is of another node pool (the label muster.dev/node-pool of its root queue)"
    LIMIT_REACHED = "the pod's creator uses all that the queue allows per user, or a time window limits the queue"
    QUEUE_FULL = "the pod's queue, or one above it, uses all of its capability (muster queue explain says more)"

    @property
    def tag(self) -> str:
        """The reason as a label of metrics; empty if the call was not rejected."""
        return self.name.lower()

    @property
    def verdict(self) -> CallResult:
        """The result of the call: ERROR if kube-scheduler should retry the call by itself, otherwise REJECTED."""
        return CallResult.REJECTED if self in _REJECTIONS else CallResult.ERROR


_REJECTIONS = (
    VerbReason.WAITS_FOR_GANG,
    VerbReason.NOT_PLANNED_HERE,
    VerbReason.HELD_BY_GANG,
    VerbReason.KEPT_FOR_GANG,
    VerbReason.SUSPECT,
    VerbReason.QUEUE_NOT_FOR_NAMESPACE,
    VerbReason.QUEUE_NOT_OPEN,
    VerbReason.QUEUE_OF_OTHER_POOL,
    VerbReason.LIMIT_REACHED,
    VerbReason.QUEUE_FULL,
)

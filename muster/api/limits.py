"""Upper bounds for every user-supplied number, in one table.

Admission refuses amounts over the limit. Where it was bypassed, they are ignored, or the object is set aside alone:
`beyond` says which. `make generate` makes docs/limits.md of the table.
"""

from typing import Final, NamedTuple

from muster.api import names
from muster.api.fields import FieldError


class Limit(NamedTuple):
    """The upper bound of one amount."""

    name: str
    value: int
    unit: str
    bounds: str
    """The amounts, and the fields that hold them."""
    checked: str
    """The processes that check it."""
    beyond: str
    """The treatment of an object over the limit that was not refused."""
    why: str
    """The reason for this number."""

    def exceeded(self, path: str, value: int) -> list[FieldError]:
        """Return an error if the field at `path` holds more than the limit."""
        if value <= self.value:
            return []
        return [FieldError(path, f"must be at most {self.value} ({self.unit}; limit {self.name!r})", value)]

    def exceeded_by(self, path: str, count: int) -> list[FieldError]:
        """Return an error if the list or map at `path` has more entries than the limit."""
        if count <= self.value:
            return []
        return [FieldError(path, f"must have at most {self.value} {self.unit} (limit {self.name!r})", count)]


_ALONE = "the gang is set aside alone; its PodGroup says why"

PODS: Final = Limit(
    "pods per gang",
    20_000,
    "pods",
    "a Job's `replicas` over all tasks, a PodGroup's `minMember` and `minTaskMember`, a TrainJob's `numNodes`, "
    "completions, replicas and group sizes of workloads with a framework (JobSets: Jobs times parallelism), "
    f"the annotations `{names.SIZE}` and `{names.MIN_MEMBER}`, and the slots of a Placement",
    "webhook, controller, planner",
    f"the controller makes no pods and says so in an Event; {_ALONE}; annotations are ignored",
    "a Placement of so many members stays far under the 1.5 MB that etcd takes, and no cluster that Kubernetes "
    "supports runs more than a few such gangs",
)
RANK: Final = Limit(
    "rank",
    PODS.value - 1,
    "highest rank",
    f"the annotations `{names.MEMBER_INDEX}`, `{names.RANK}` and `{names.TASK_INDEX}`, completion and pod indexes",
    "webhook, planner",
    "the index is ignored: the planner gives the pod the first free rank",
    "ranks count from 0 and there are no more of them than pods",
)
GPU_DEVICES: Final = Limit(
    "GPUs per node that pods share",
    64,
    "devices",
    f"the annotation `{names.GPU_NUM_DEVICES}`, and the devices of a node that are counted one by one",
    "webhook, planner",
    "the pod is set aside alone; of a node with more GPUs the others are used whole",
    "four times as many as servers have",
)
GPU_MEMORY: Final = Limit(
    "GPU memory",
    2**30,
    "MiB",
    f"the annotation `{names.GPU_MEMORY_ASKED}` and the resource `{names.VOLCANO_GPU_MEMORY}`",
    "webhook, planner",
    "the pod is set aside alone",
    "a pebibyte, thousands of times what a GPU has, and thousandths of it still fit into 64 bits",
)
EPOCH: Final = Limit(
    "epoch",
    2**31 - 1,
    "placements",
    f"a Placement's `epoch` and the annotation `{names.EPOCH}`",
    "the CRD's schema, planner",
    "the annotation is ignored, as if the pod had never been pinned",
    "the field has 32 bits, as Kubernetes' counters have: one placement each second for 68 years",
)
DIGITS: Final = Limit(
    "digits",
    18,
    "digits",
    "every whole number in a label or annotation",
    "webhook, controller, planner",
    "the number is ignored, as one that is not written",
    "the longest that always fits into 64 bits; Python takes time in the square of the digits",
)
TASKS: Final = Limit(
    "tasks per Job",
    128,
    "tasks",
    "a Job's `tasks`",
    "webhook, controller, planner",
    f"the controller makes no pods and says so in an Event; {_ALONE}",
    "each task is tried by itself in every cycle; tasks are kinds of pods, not pods",
)
RESOURCES: Final = Limit(
    "resource names per pod",
    64,
    "resource names",
    "names in requests and limits of one pod, over all its containers",
    "webhook, planner",
    _ALONE,
    "nodes offer about ten; each name costs a look at every node",
)
TOPOLOGY_WISHES: Final = Limit(
    "topology wishes per pod set",
    64,
    "different wishes",
    "different topology annotations among the pods of one pod set",
    "planner",
    _ALONE,
    "each different wish is tried by itself; the ReplicatedJobs of a JobSet are pods of one pod set",
)
SUB_GROUPS: Final = Limit(
    "sub-groups by labels",
    1_024,
    "sub-groups",
    "a PodGroup's `subGroupPolicy` entries, and the sub-groups of their `matchLabelKeys`",
    "planner",
    _ALONE,
    "each is searched a domain; partitions of a Job's task are not counted, as they are equally large",
)
POLICIES: Final = Limit(
    "policies",
    128,
    "policies",
    "`policies` of a Job, and of each of its tasks",
    "webhook",
    "they are carried out; each event is compared with all of them",
    "there are fewer events, and programs have few exit codes with a meaning",
)
VOLUMES: Final = Limit(
    "volumes per Job",
    128,
    "volumes",
    "a Job's `volumes`",
    "webhook",
    "the API server refuses pods that are too large",
    "every pod of the Job mounts all of them",
)
PROCESSES: Final = Limit(
    "processes per node",
    4_096,
    "processes",
    f"a TrainJob's `numProcPerNode`, the annotation `{names.NPROC_PER_NODE}` and an MPI launcher's slots per worker",
    "webhook",
    "it is passed on as it is written, and nothing of its size is made",
    "more than any machine has hardware threads",
)
RETRIES: Final = Limit(
    "retries",
    1_000_000,
    "restarts",
    "`maxRetry` of a Job and of its tasks",
    "webhook",
    "it is only compared with the count of restarts",
    "one restart a minute for two years",
)
SECONDS: Final = Limit(
    "seconds",
    315_360_000,
    "seconds",
    "`ttlSecondsAfterFinished` of a Job, `timeout` of its policies, a pod's `activeDeadlineSeconds` and the annotation "
    f"`{names.EXPECTED_RUNTIME}`",
    "webhook, planner",
    "the timer does not fire within the life of the process; the pod is expected to run for ever",
    "ten years; dates that it is added to stay within the calendar",
)
_APART: Final = "the HyperNode is left out of the tree; its condition `Valid` says why"
MEMBERS: Final = Limit(
    "members per HyperNode",
    10_000,
    "members",
    "`members` of a HyperNode",
    "webhook, planner",
    _APART,
    "an object of so many names just fits into etcd; one pattern or label selector can replace many",
)
PATTERNS: Final = Limit(
    "patterns per HyperNode",
    64,
    "patterns",
    "members of a HyperNode with a `regexMatch`",
    "webhook, planner",
    _APART,
    "every pattern is compared with the name of every node; several are one with `|` between them",
)
ALL_PATTERNS: Final = Limit(
    "patterns of all HyperNodes",
    4_096,
    "different patterns",
    "`regexMatch` of all HyperNodes together, equal ones once",
    "planner",
    "HyperNodes whose patterns come after these, by age and name, are left out of the tree; their condition `Valid` "
    "says why",
    "100,000 names are compared with so many in a few seconds, once",
)
PATTERN_CHARS: Final = Limit(
    "characters of a pattern",
    512,
    "characters",
    "a `regexMatch` pattern of a HyperNode",
    "webhook, planner",
    _APART,
    "names of nodes have 253 at most",
)
PATTERN_STEPS: Final = Limit(
    "steps of a pattern",
    1_000,
    "steps of its program in RE2",
    "a `regexMatch` pattern of a HyperNode; `{1,100}` counts as often as it says",
    "webhook, planner",
    _APART,
    "the time for one name is at most its length times these; usual patterns have 10 to 100",
)
SELECTOR_TERMS: Final = Limit(
    "conditions of a label selector",
    64,
    "conditions",
    "`matchLabels` and `matchExpressions` of a member of a HyperNode together",
    "webhook, planner",
    _APART,
    "each is compared with the labels of every node that may match",
)
TIERS: Final = Limit(
    "tiers",
    16,
    "tiers",
    "different values of `tier` in all HyperNodes",
    "planner",
    "HyperNodes of the tiers above the lowest so many are left out of the tree; their condition `Valid` says why",
    "no network has more levels, and Kueue's topologies have as many; each costs a number per node",
)
PLACES: Final = Limit(
    "HyperNodes of a node",
    64,
    "HyperNodes",
    "HyperNodes that have one node as a direct member",
    "planner",
    "the node is in no domain; the condition `Valid` of these HyperNodes says so",
    "one per tier makes sense; a pattern that matches too much must not fill the memory",
)
DEVICE_KINDS: Final = Limit(
    "kinds of devices",
    256,
    "kinds",
    "different requests for devices (class, selectors, tolerations) of all ResourceClaims, ResourceClaimTemplates and "
    "DeviceClasses of the cluster",
    "planner",
    "further ones are not counted when gangs are planned: kube-scheduler decides, and `muster explain` says so",
    "each is a row of the planner's arrays over all nodes; clusters have some tens",
)
LIMITS: Final = tuple(each for each in list(globals().values()) if isinstance(each, Limit))
"""The table: all limits of this module, in their order."""


class LimitError(ValueError):
    """An object cannot be evaluated, as an amount in it is over its limit; the message is for its owner."""


def whole_number(text: str | None, most: int | None = None) -> int | None:
    """Return the number that a label or annotation holds: decimal digits, within the limit, and at most `most`.

    None for anything else. Python itself refuses to read numbers of very many digits.
    """
    if not text or len(text) > DIGITS.value or not (text.isascii() and text.isdecimal()):
        return None
    number = int(text)
    return None if most is not None and number > most else number

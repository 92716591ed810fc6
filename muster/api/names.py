"""Every label, annotation, gate, resource and object name that Muster reads or writes."""

from collections.abc import Mapping

DOMAIN = "muster.dev"

# Labels set by users: opt in to a queue, shape for a framework, join a gang, order tasks, opt out.
QUEUE = f"{DOMAIN}/queue"
FRAMEWORK = f"{DOMAIN}/framework"
GANG = f"{DOMAIN}/gang"
TASK_PRIORITY = f"{DOMAIN}/task-priority"
MANAGED = f"{DOMAIN}/managed"  # "false": opt out
# Label of nodes and root queues, copied by Muster to PodGroups and Placements: their node pool (api.muster.pools).
NODE_POOL = f"{DOMAIN}/node-pool"

# Annotation set by users on a Volcano Job: the quirks of Volcano that it requests.
COMPAT = f"{DOMAIN}/compat"

# Annotations set by users: parameters of a gang.
MIN_MEMBER = f"{DOMAIN}/min-member"
TOPOLOGY_REQUIRED = f"{DOMAIN}/topology-required"
TOPOLOGY_PREFERRED = f"{DOMAIN}/topology-preferred"
# The topology with these levels; for a pod template also slices of consecutive ranks, each in one domain of a level,
# and groups of pod sets (a leader and its workers) that are placed close together. See docs/topology.md.
TOPOLOGY = f"{DOMAIN}/topology"
TOPOLOGY_NEAR_KEYS = (TOPOLOGY_REQUIRED, TOPOLOGY_PREFERRED)
TOPOLOGY_SLICE_KEYS = (f"{DOMAIN}/topology-slice-required", f"{DOMAIN}/topology-slice-size")  # level and size
TOPOLOGY_LEVEL_KEYS = (*TOPOLOGY_NEAR_KEYS, TOPOLOGY_SLICE_KEYS[0])
_TOPOLOGY_GROUP = f"{DOMAIN}/topology-group"
TOPOLOGY_KEYS = (TOPOLOGY, *TOPOLOGY_NEAR_KEYS, *TOPOLOGY_SLICE_KEYS, _TOPOLOGY_GROUP)
ELASTIC = f"{DOMAIN}/elastic"
NUM_NODES = f"{DOMAIN}/num-nodes"  # of an elastic TrainJob: its new number of nodes

# Annotations of a Queue, which also apply to the queues below it, or of a PodGroup or its workload, which take
# precedence. The mode may also be a label. See docs/autoscaling.md.
SCALE_UP = f"{DOMAIN}/scale-up"  # condition, provisioning-request or none
SCALE_UP_CLASS = f"{DOMAIN}/scale-up-class"  # provisioningClassName
SCALE_UP_PARAMETERS = f"{DOMAIN}/scale-up-parameters"  # of that class: "key=value,key=value"
SCALE_UP_TIMEOUT = f"{DOMAIN}/scale-up-timeout"  # time of an autoscaler for one request, e.g. 10m
SCALE_UP_KEYS = (SCALE_UP, SCALE_UP_CLASS, SCALE_UP_PARAMETERS, SCALE_UP_TIMEOUT)
SAFE_TO_EVICT = f"{DOMAIN}/safe-to-evict"  # of a Queue only: true, false or on-completion; on pods it is Muster's note
# Annotation set by users on a workload, a PodGroup or a pod: its expected duration.
EXPECTED_RUNTIME = f"{DOMAIN}/expected-runtime"
PRIORITY_CLASS = f"{DOMAIN}/priority-class"  # of a TrainJob at its creation: the PriorityClass of its pods

# Annotations about spare slots (docs/faults.md): set by users on a workload or a PodGroup, and by Muster on pods on
# spare slots.
SPARES = f"{DOMAIN}/spares"  # number of nodes with spare slots for lost members: "2" or "worker=2"
BORROWS = f"{DOMAIN}/borrow-spares"  # "true": the gang may run on spare slots of others, and leaves them at once
RUNS_ON_SPARE = f"{DOMAIN}/runs-on-spare"  # written by Muster on a pod on a spare slot of another gang: "true"

# Eviction notices, docs/preemption.md: time between a gang's notice and its eviction (on a workload, a PodGroup or a
# pod; on a Queue the maximum); Muster's annotations and condition on the gang's pods; and the answer of a pod.
EVICT_NOTICE = f"{DOMAIN}/evict-notice"  # a duration, e.g. 300s
MAX_EVICT_NOTICE = f"{DOMAIN}/max-evict-notice"  # of a Queue, and of the queues below it
EVICT_AT = f"{DOMAIN}/evict-at"  # written by Muster: RFC 3339
EVICT_FOR = f"{DOMAIN}/evict-for"  # written by Muster: the queue that gets the capacity
EVICTION_NOTICE = f"{DOMAIN}/EvictionNotice"  # type of the condition
CHECKPOINT = f"{DOMAIN}/checkpoint"  # "step=1200,at=2026-11-26T05:00:00Z", at any time
EVICT_READY = f"{DOMAIN}/evict-ready"  # "true": nothing is left to save

# The creator of a workload, as authenticated by the API server: written by admission, never copied from the object.
CREATED_BY = f"{DOMAIN}/created-by"
CHANGED_BY = f"{DOMAIN}/changed-by"  # annotation of a PodGroup: likewise, who changed its queue or class last

# Annotations set by users on a Volcano Job or a TrainJob: the number of restarts for its own faults, and exit codes
# that do not count as such (docs/preemption.md).
RESTART_BUDGET = f"{DOMAIN}/restart-budget"  # "5 in 1h"
INFRASTRUCTURE_EXIT_CODES = f"{DOMAIN}/infrastructure-exit-codes"  # "75,85"

# Annotations set by users on a workload or a PodGroup: the policy for the gang when its nodes fail (docs/faults.md).
ON_NODE_FAULT = f"{DOMAIN}/on-node-fault"  # wait, replace or restart
NODE_FAULT_GRACE = f"{DOMAIN}/node-fault-grace"  # time for a node that does not respond, e.g. 30s
AVOID_FAILED_NODE = f"{DOMAIN}/avoid-failed-node"  # time for which a node is avoided where a member failed, e.g. 10m
FAULT_KEYS = (ON_NODE_FAULT, NODE_FAULT_GRACE, AVOID_FAILED_NODE)
GANG_KEYS = (EXPECTED_RUNTIME, SPARES, BORROWS, EVICT_NOTICE, *FAULT_KEYS)  # of a workload, copied to its PodGroup
OF_TRAIN_JOBS = (
    *GANG_KEYS,
    CREATED_BY,
    RESTART_BUDGET,
    INFRASTRUCTURE_EXIT_CODES,
)  # of a TrainJob, copied to its Job

# Annotation set by users on a Queue: the mode for gangs behind a gang that waits for capacity (strict, reserve or
# besteffort).
RESERVATIONS = f"{DOMAIN}/reservations"
RESERVATION_MODES = ("strict", "reserve", "besteffort")

# Annotations of a Queue: limits besides its capability, for the queue and its descendants together (docs/queues.md).
MAX_PER_USER = f"{DOMAIN}/max-per-user"  # "nvidia.com/gpu=16,pods=100"
MAX_BY_MODEL = f"{DOMAIN}/max-by-model"  # "H100=64,A100=128"
WINDOWS = f"{DOMAIN}/limit-windows"  # "Mon-Fri 08:00-18:00 Europe/Berlin nvidia.com/gpu=32; ..."
BUDGET = f"{DOMAIN}/budget"  # "nvidia.com/gpu=10000h/month,nvidia.com/gpu=500h/day"
BUDGET_MODE = f"{DOMAIN}/budget-mode"  # enforce or warn
QUEUE_LIMIT_KEYS = (MAX_PER_USER, MAX_BY_MODEL, WINDOWS, BUDGET, BUDGET_MODE)
USAGE = "muster-usage"  # ConfigMap in Muster's namespace: usage of queues, written by the history recorder

# Annotations set by users on a pod without an owner that is one of several: its rank, their number, the host of rank 0.
RANK = f"{DOMAIN}/rank"
SIZE = f"{DOMAIN}/size"
LEADER = f"{DOMAIN}/leader"

# Written by Muster on pods.
GATE = f"{DOMAIN}/gang"  # scheduling gate: waits until the gang has a placement
QUEUE_ALLOCATION_GATE = "scheduling.volcano.sh/queue-allocation-gate"  # the same gate, for pods with this annotation
GATES = frozenset({GATE, QUEUE_ALLOCATION_GATE})
EPOCH = f"{DOMAIN}/epoch"  # annotation: the placement's epoch that pinned or bound this pod
NODE = f"{DOMAIN}/node"  # annotation: the node that this pod is pinned to
REVIEWED = f"{DOMAIN}/reviewed"  # label of a Volcano Job's pod: "true" if it was reviewed with the Job
PLACEMENT = f"{DOMAIN}/placement"  # annotation of a PodGroup: the placement of a gang of one (api.muster.placement)
WORKLOAD = f"{DOMAIN}/workload"  # annotation of a PodGroup: the workload that created its owner (api.muster.gang)
LATER_TASKS = f"{DOMAIN}/later-tasks"  # annotation of a PodGroup: tasks that do not count yet (dependsOn)
GROUPED_TEMPLATES = f"{DOMAIN}/grouped-templates"  # annotation of a Volcano Job: settings of its pods
NATIVE_GROUP = f"{DOMAIN}/native-group"  # annotation of a pod template: "true" if the Job's native PodGroup is its gang
INDIVISIBLE = f"{DOMAIN}/indivisible"  # in the planner: a gang whose pods may only be evicted together
MEMBER_INDEX = f"{DOMAIN}/member-index"  # annotation: rank of this pod in its pod set, for the planner
SCALE_UP_ATTEMPT = f"{DOMAIN}/scale-up-attempt"  # annotation of a ProvisioningRequest: its number for the gang
# Written by `muster move` and `muster hold` on a workload.
MOVED_TO = f"{DOMAIN}/moved-to"  # annotation: its queue since the move; takes precedence over the label of its pods
HELD_REPLICAS = f"{DOMAIN}/held-replicas"  # annotation: its replicas before it was held
# Written by Muster on TrainJobs and on their objects.
RUNTIME_VERSION = f"{DOMAIN}/runtime-version"  # annotation of a TrainJob: "<UID>/<resourceVersion>" at admission
TRAIN_JOB = f"{DOMAIN}/train-job"  # label of an object that was made for the TrainJob of this name
TRAIN_JOB_SPEC = f"{DOMAIN}/train-job-spec"  # annotation: hash of the TrainJob's fields that determine its pods
RESUMED_AT = f"{DOMAIN}/resumed-at"  # annotation of a TrainJob's Job: time of its last resumption
DELETE_AFTER = f"{DOMAIN}/delete-after"  # annotation: seconds after the TrainJob's end until its Job is deleted
MESSAGE_PREFIX = "Muster: "  # prefix of messages that Muster writes into conditions of pods

# Marker resources: a shared scheduler calls Muster only for pods that request them. A resource may be in only one entry
# of an extender, and there are two entries (filter and bind).
MEMBER_MARKER = f"{DOMAIN}/member"
BINDING_MARKER = f"{DOMAIN}/binding"
MARKERS = frozenset({MEMBER_MARKER, BINDING_MARKER})

# Schedulers: the profiles of Muster's kube-scheduler; other node pools have others (api.muster.pools.is_musters).
CLUSTER_SCHEDULER = "default-scheduler"
SCHEDULER = "muster"
VOLCANO_SCHEDULER = "volcano"
SCHEDULERS = frozenset({SCHEDULER, VOLCANO_SCHEDULER})
SCHEDULER_LEASE = "muster-scheduler"
EXTENDER_HOST = "muster-extender"  # the name in its certificate, independent of its address
CONTROLLER_LEASE = "muster-controller"
CONTROLLER_ACCOUNT = "muster-controller"  # its ServiceAccount, in the namespace where Muster is installed
HISTORY_LEASE = "muster-history"
SYSTEM_NAMESPACE = "muster-system"
FIELD_MANAGER = "muster"
WEBHOOKS = "muster"  # both webhook configurations

# The certificates of Muster's servers: their Secret, the label value that marks it as Muster's, and its annotations.
CERTIFICATES = "muster-webhook-tls"
MANAGER = "muster"  # the value of MANAGED_BY on objects of Muster
ROTATE = f"{DOMAIN}/rotate"  # request of a user: serving or authority

# Queues that always exist.
CLOSE_QUEUE, OPEN_QUEUE = "CloseQueue", "OpenQueue"  # actions of Commands to them
ROOT_QUEUE = "root"
DEFAULT_QUEUE = "default"

# Volcano's names.
GROUP_NAME = "scheduling.k8s.io/group-name"
COSCHEDULING_GROUP = "scheduling.x-k8s.io/pod-group"
GPU_FRACTION = "gpu-fraction"  # KAI-Scheduler's: a part of one GPU, "0.5"
GPU_SHARE_MEMORY = "gpu-memory"  # KAI-Scheduler's: memory of one GPU, in MiB
GPU_NUM_DEVICES = "gpu-fraction-num-devices"  # KAI-Scheduler's: the same fraction of each of this number of GPUs
GPU_SHARE_KEYS = (GPU_FRACTION, GPU_SHARE_MEMORY, GPU_NUM_DEVICES)
REVIEWED_FOR = frozenset({QUEUE_ALLOCATION_GATE, *GPU_SHARE_KEYS})  # annotations: the pod itself is reviewed
GPU_CONTAINER = "gpu-fraction-container-name"  # KAI-Scheduler's: the container that uses it; otherwise the first
GPU_PRODUCT = "nvidia.com/gpu.product"  # the same discovery's: with MIG devices as GPUs, the name has "-MIG-"
MIG_PREFIX = "nvidia.com/mig-"  # resources of MIG devices: nvidia.com/mig-1g.5gb
GPU_PER_DEVICE_MEMORY = "nvidia.com/gpu.memory"  # node label of NVIDIA's feature discovery: MiB of each GPU
GPU_DEVICES_CHOSEN = "muster.dev/gpu-devices"  # on a bound pod: its GPUs by number, "0" or "0,3"
GPU_PORTION = "muster.dev/gpu-portion"  # on a bound pod: the part of each, "0.5"
VOLCANO_GPU_MEMORY = "volcano.sh/gpu-memory"  # a resource: MiB of one GPU
VOLCANO_GPU_NUMBER = "volcano.sh/gpu-number"  # a resource: GPUs that are not shared
VOLCANO_PREDICATE_TIME = "volcano.sh/predicate-time"  # on a bound pod: time of the choice, in ns
VOLCANO_GPU_INDEX = "volcano.sh/gpu-index"  # on a bound pod: the GPU that Volcano's device plugin gives it
VOLCANO_QUEUE = "scheduling.volcano.sh/queue-name"
INDEPENDENT = f"{DOMAIN}/independent-pods"  # on a PodGroup that the controller creates: its pods are gangs of one
VOLCANO_GROUP_MIN_MEMBER = "scheduling.volcano.sh/group-min-member"
TASK_INDEX = "volcano.sh/task-index"
TASK_SPEC = "volcano.sh/task-spec"
JOB_NAME = "volcano.sh/job-name"
JOB_NAMESPACE = "volcano.sh/job-namespace"
QUEUE_NAME = "volcano.sh/queue-name"
PREEMPTABLE = "volcano.sh/preemptable"  # label or annotation of a PodGroup or pod; "false": never evicted for others
REVOCABLE_ZONE = "volcano.sh/revocable-zone"  # annotation of a PodGroup: "*", it may be evicted at any time
JDB_MIN_AVAILABLE = "volcano.sh/jdb-min-available"  # annotations of a PodGroup: pods, or a percentage of its pods
JDB_MAX_UNAVAILABLE = "volcano.sh/jdb-max-unavailable"
PREEMPT_MIN_RUNTIME = f"{DOMAIN}/preempt-min-runtime"  # annotations of a Queue: a duration, see docs/preemption.md
RECLAIM_MIN_RUNTIME = f"{DOMAIN}/reclaim-min-runtime"
QUEUE_WEIGHTS = f"{DOMAIN}/weights"  # annotation of a Queue: its weight by resource, see docs/queues.md
NAMESPACE_SELECTOR = f"{DOMAIN}/namespace-selector"  # annotation of a Queue: the namespaces that may use it
# Every annotation of a Queue under this domain: an unknown one is refused.
QUEUE_KEYS = frozenset({
    *QUEUE_LIMIT_KEYS, *SCALE_UP_KEYS,
    *(SAFE_TO_EVICT, MAX_EVICT_NOTICE, RESERVATIONS, QUEUE_WEIGHTS, NAMESPACE_SELECTOR),
    *(PREEMPT_MIN_RUNTIME, RECLAIM_MIN_RUNTIME),
})  # fmt: skip
QUEUE_LOCKED = f"{DOMAIN}/queue-locked"  # label of a namespace: "true" restricts its workloads to its queue
PARTITION_ID = "volcano.sh/partition-id"
SLA_WAITING_TIME = "volcano.sh/sla-waiting-time"  # annotation of a PodGroup: its maximum wait, as in Go
HIERARCHY = "volcano.sh/hierarchy"  # annotation of a Queue: its path in the tree, "root/a/b"
HIERARCHY_WEIGHTS = "volcano.sh/hierarchy-weights"  # the weight of each queue on that path, "1/2/8"
JOB_VERSION = "volcano.sh/job-version"
TEMPLATE_UID = "volcano.sh/template-uid"
JOB_RETRY_COUNT = "volcano.sh/job-retry-count"
OUT_OF_SYNC = "volcano.sh/controller-out-of-sync"

# Kueue's names: on plain pods that start together, the label with the name of their group, and their number; on a pod
# template, annotations about the topology of its pods.
KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"
KUEUE_GROUP = "kueue.x-k8s.io/pod-group-name"
KUEUE_TOTAL = "kueue.x-k8s.io/pod-group-total-count"
_PODSET = "kueue.x-k8s.io/podset"
KUEUE_REQUIRED = f"{_PODSET}-required-topology"
KUEUE_PREFERRED = f"{_PODSET}-preferred-topology"
KUEUE_UNCONSTRAINED = f"{_PODSET}-unconstrained-topology"
KUEUE_NEAR_KEYS = (KUEUE_REQUIRED, KUEUE_PREFERRED)
KUEUE_TOPOLOGY_MODES = (*KUEUE_NEAR_KEYS, KUEUE_UNCONSTRAINED)
KUEUE_SLICE_KEYS = (f"{_PODSET}-slice-required-topology", f"{_PODSET}-slice-size")  # level and size
KUEUE_SLICE_LAYERS = f"{_PODSET}-slice-required-topology-constraints"
KUEUE_TOPOLOGY_LEVEL_KEYS = (*KUEUE_NEAR_KEYS, KUEUE_SLICE_KEYS[0])
_KUEUE_GROUP = f"{_PODSET}-group-name"
KUEUE_TOPOLOGY_KEYS = (*KUEUE_TOPOLOGY_MODES, *KUEUE_SLICE_KEYS, KUEUE_SLICE_LAYERS, _KUEUE_GROUP)
TOPOLOGY_GROUP = (_TOPOLOGY_GROUP, _KUEUE_GROUP)  # the first counts
SLICE_KEYS = (*TOPOLOGY_SLICE_KEYS, *KUEUE_SLICE_KEYS, KUEUE_SLICE_LAYERS)
REPLICATED_JOB = "jobset.sigs.k8s.io/replicatedjob-name"  # label of a JobSet's pods: the replicated job

# KAI-Scheduler's names, on a workload or its pod template: levels of the gang, as node labels, and its minimum.
KAI_TOPOLOGY = "kai.scheduler/topology"
KAI_NEAR_KEYS = (f"{KAI_TOPOLOGY}-required-placement", f"{KAI_TOPOLOGY}-preferred-placement")
KAI_MIN_MEMBER = "kai.scheduler/batch-min-member"
MIN_MEMBER_KEYS = (MIN_MEMBER, VOLCANO_GROUP_MIN_MEMBER, KAI_MIN_MEMBER)  # of a workload or pod; the first one counts
GANG_TOPOLOGY_KEYS = (TOPOLOGY, *TOPOLOGY_NEAR_KEYS, *KAI_NEAR_KEYS)  # of a workload, copied to its PodGroup

# Autoscalers' names.
PODS_SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
CONSUMED_REQUEST = "autoscaling.x-k8s.io/consume-provisioning-request"
CONSUMED_CLASS = "autoscaling.x-k8s.io/provisioning-class-name"

# Kubernetes' names.
MANAGED_BY = "app.kubernetes.io/managed-by"
BATCH_JOB_NAME = "batch.kubernetes.io/job-name"
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
POD_INDEX = "apps.kubernetes.io/pod-index"
HOSTNAME = "kubernetes.io/hostname"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

# Labels and annotations of a pod that determine its charge: its queue, gang and slot, its evictability, its GPU
# fraction and its GPUs. The policy muster-pods keeps them unchanged on a bound pod. Kubernetes' COMPLETION_INDEX and
# POD_INDEX are excluded, because foreign pods have them too; the planner stores the slot of a bound pod.
CHARGED = frozenset(
    {
        *(QUEUE, QUEUE_NAME, VOLCANO_QUEUE),
        *(GANG, GROUP_NAME, COSCHEDULING_GROUP),
        *(TASK_SPEC, TASK_INDEX, MEMBER_INDEX, PREEMPTABLE),
        *(*GPU_SHARE_KEYS, GPU_DEVICES_CHOSEN, GPU_PORTION, VOLCANO_GPU_INDEX),
    }
)


def opted_out(labels: Mapping[str, str]) -> bool:
    """Return True if an object or template with these labels opts out of Muster."""
    return labels.get(MANAGED) == "false"

"""The controller's metrics; API calls are counted by `muster.kube`."""

from prometheus_client import Counter, Histogram

RECONCILES = Counter("muster_controller_reconciles_total", "Passes over an object.", ["controller", "result"])
RECONCILE_SECONDS = Histogram(
    "muster_controller_reconcile_seconds",
    "Seconds of one pass over an object.",
    ["controller"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
PODS_CREATED = Counter("muster_controller_pods_created_total", "Pods created.", ["born"])
PODS_DELETED = Counter("muster_controller_pods_deleted_total", "Pods deleted.", ["why"])
POD_FAILURES = Counter("muster_controller_pod_failures_total", "Pods that could not be created or deleted.", ["verb"])
STATUS_WRITES = Counter("muster_controller_status_writes_total", "Writes of a Job's status.", ["why"])
ACTIONS = Counter("muster_controller_actions_total", "Actions carried out on Jobs.", ["action"])

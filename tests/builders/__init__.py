"""Builders of objects: the words in which all tests describe a cluster.

`from builders import pod` builds the object as the processes read it, `from builders.manifests import pod` the JSON
that a user or controller sends, from the same arguments. What a test does not name has the usual value.

- a node: `node("node-0", gpus=8, labels={"rack": "r1"}, unschedulable=True)`
- a queue: `queue("research", parent="root", weight=2, annotations={USAGE: "..."})`
- a pod of a gang: `pod("train-worker-0", node="node-0", gang="train", task="worker", index=0, limits={GPU: 8})`
- a gang: `[pod_group("train", 2, queue="research"), *members("train", ["node-0", "node-1"])]`
- a Volcano Job: `job("train", {"master": 1, "worker": 3}, queue="research", policies=[...])`
- a batch Job: `batch_job("train", 4, labels={QUEUE: "research"})`
- a TrainJob: `train_job("fit", "torch-distributed", nodes=4)`
- a placement: `placement("train", {"worker": ["node-0", "node-1"]}, epoch=1, phase="Bound")`

Arguments in snake_case are fields of the spec (`min_available=2` is `spec.minAvailable`), but for those of the
metadata: `uid`, `labels`, `annotations`, `owner`, `version`, `created`, `deleted`, `generate_name`, `finalizers`.
`status=` is the status; `phase=` is the part of it that most tests name.

Worlds are made of them: `World` (extender_world) is a cluster as the planner sees it, `Cluster` (simulated_cluster) one
around the real controller, `Pages` (web_world) one behind the pages.
"""

from builders.objects import batch_job, job, job_owner, members, node, placement, pod, pod_group, queue, train_job

GPU = "nvidia.com/gpu"

__all__ = [
    "GPU", "batch_job", "job", "job_owner", "members", "node", "placement", "pod", "pod_group", "queue", "train_job"
]  # fmt: skip

"""Workload kinds: one table with the pod templates, ranks, gangs and sample pods of each kind of owner.

`kind.WorkloadKind` is a row, and `table` contains all rows, with functions that find the row of an owner and the
adapter of a pod. For pods that do not belong to a Volcano Job, `table` also finds the gang: PodGroup, world and
minimum. Each kind has a module with its row and its *adapter* (`adapter.Adapter`: ranks, size and host names of its
pods). `podgroup` computes the PodGroup of a pod that does not belong to a Volcano Job. Python code takes the kinds only
from this package. The webhook registers for these kinds, webhook and controller read their objects as owners, and
`muster shape` shows them.

A new kind needs a module in this package and a row in `table`. `make generate` then adds the kind to
charts/muster/files/webhooks.yaml. Other lists name kinds by hand, and need an entry for the new kind. The rights of the
processes that read the kind, and of users, are in charts/muster/files/roles. The policy policies/creators.yaml lists
kinds, and the variable `makers` in policies/controller.yaml lists API groups. The policy choices/opt-out.yaml lists
kinds, and the paths of their templates. The rights of the commands for a kind are in musterctl/chart/commands.yaml. The
page docs/frameworks.md describes each kind whose pods have ranks.

All functions of the package are pure; callers read the owners. Volcano Jobs have only a row in the table, because
muster.volcano describes them. The package `muster.workloads` must not import muster.kube, or muster.runtime, which uses
this package. Start reading at `kind`, then continue with `batch_job`.
"""

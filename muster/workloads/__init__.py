"""Workload kinds: one table with the pod templates, ranks, gang and first pods of each kind of owner.

`kind.WorkloadKind` is a row, and `table` contains all rows, with functions that find the row of an owner and the
adapter of a pod. For pods that do not belong to a Volcano Job, the functions also find the gang: PodGroup, world and
minimum. Each kind has a module with its row and its *adapter* (`adapter.Adapter`: ranks, size and host names of its
pods). Only this package lists kinds: the webhook registers for them, webhook and controller read owners by them, and
`muster shape` shows them. A new kind needs a module here, a row in the table, and rights for the processes that read it
(charts/muster/files/roles). `podgroup` computes the PodGroup of a pod that does not belong to a Volcano Job.

All functions are pure; callers read the owners. Volcano Jobs have only a row in the table, because muster.volcano
describes them. The package must not import muster.kube, or muster.runtime, which uses this package. Readers of the code
start with `kind`, then `batch_job`.
"""

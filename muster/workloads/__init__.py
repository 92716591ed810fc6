"""Workload kinds: for each kind of owner, its pod templates, ranks, gang and first pods, in one table.

`kind.WorkloadKind` is a row; `table` has all rows. It finds that of an owner, the adapter of a pod, and the gang of a
pod that is not a Volcano Job's: its PodGroup, its world and its minimum. Each kind has a module with its row and its
*adapter* (`adapter.Adapter`: ranks, size and host names of its pods). Only this package lists kinds: admission
registers for them (webhook), owners are read by them (webhook, controller), `muster shape` shows them. A new kind is a
module here and its row in the table, and rights of those who read it (charts/muster/files/roles). `podgroup` has the
PodGroup of a pod that is not a Volcano Job's.

Promises pure functions of their arguments: owners are handed in as they were read. A Volcano Job is described in
muster.volcano; its row only puts it beside the others. It must not import muster.runtime, which plans with the answers,
nor muster.kube. Start with `kind`, then `batch_job`.
"""

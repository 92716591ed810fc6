"""Workload kinds: for each kind of owner, its pod templates, ranks, gang and first pods, in one table.

`kind.WorkloadKind` is a row; `table` has all rows. It finds the row of an owner and the adapter of a pod. For pods of
other owners than Volcano Jobs, it also finds the gang: PodGroup, world and minimum. Each kind has a module with its row
and its *adapter* (`adapter.Adapter`: ranks, size and host names of its pods). Only this package lists kinds: the
webhook registers for them, webhook and controller read owners by them, and `muster shape` shows them. A new kind needs
a module here, a row in the table, and rights for the processes that read it (charts/muster/files/roles). `podgroup` has
the PodGroup of a pod that is not a Volcano Job's.

All functions are pure; callers read the owners. muster.volcano describes Volcano Jobs, which have only a row here. The
package must not import muster.kube, or muster.runtime, which uses its results. Start with `kind`, then `batch_job`.
"""

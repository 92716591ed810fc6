"""Workloads: what each kind of owner says about its pods. One table, and one module for each kind in it.

`kind.WorkloadKind` is a row: where the kind lives and where its pod templates stand, how its pods learn their rank, how
many they are and where rank 0 is (its *adapter*), what it says of its gang, and what its first pods look like. `table`
has all rows, and finds the one of an owner. Nobody else lists kinds: admission registers for them (webhook), owners are
read by them (webhook, controller), `muster shape` shows them. A new kind is a module here and its row in the table.

* `choose`: which adapter speaks for a pod. `adapter`: the questions that all of them answer.
* `minimum`: the smallest gang of pods that are not a Volcano Job's. `service`: the Service under which they meet.
* `templates`: how pod templates are found in a document. `sample`: the parts that sample pods are made of.

It promises pure functions of what is handed in: an owner is asked as it was read, and nobody is asked for it. A Volcano
Job is what muster.volcano says; its row only puts it beside the others. It must not import muster.runtime, which plans
with the answers, nor muster.kube. Start with `kind`, then `batch_job`.
"""

"""Quantities and resource vectors: the requests of pods and the allocatable resources of nodes, as exact integers.

All functions of the package are pure. They compute like kube-scheduler, so that plans pass kube-scheduler's checks. All
quantities are integers, rounded up (no floats, no Decimals). The package `muster.resources` must import nothing but
muster.api. Start reading at `quantity`, then continue with `vector`. `pods` computes the requests of a pod and its
usage of a ResourceQuota, and `gpus` handles GPU fractions. `topology` and `runtime` parse annotations, and `labels`
parses label selectors.
"""

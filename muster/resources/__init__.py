"""Quantities and resource vectors: the requests of pods and the allocatable resources of nodes, as exact integers.

All functions are pure and follow kube-scheduler's arithmetic, so that a plan made with them holds when kube-scheduler
checks it. All amounts are integers (no floats, no Decimals), rounded up. The package must import nothing but
muster.api. Start with `quantity`, then `vector`. `pods` has the requests of a pod and its use of a quota, `gpus` parts
of GPUs. `topology` and `runtime` read annotations, and `labels` label selectors.
"""

"""Quantities and resource vectors: the requests of pods and the allocatable resources of nodes, as exact integers.

All functions are pure. The functions compute like kube-scheduler, so that plans pass kube-scheduler's checks. All
quantities are integers (no floats, no Decimals), rounded up. The package must import nothing but muster.api. Readers of
the code start with `quantity`, then `vector`. `pods` computes the requests of a pod and its use of a quota, and `gpus`
handles GPU fractions. `topology` and `runtime` parse annotations, and `labels` parses label selectors.
"""

"""Quantities and resource vectors: what pods ask for and what nodes have, in exact integers.

Everything here is a pure function of its arguments and follows kube-scheduler's arithmetic, so that a plan made with it
holds when kube-scheduler checks it. It promises integers only (no floats, no Decimals), rounded up, and must import
nothing but muster.api. Start with `quantity`, then `vector`; `pods` and `usage` are the two sums that are made of them,
`duration` and `words` read and write for people.
"""

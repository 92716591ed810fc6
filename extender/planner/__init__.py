"""Decisions on where pods run: pure, without I/O and without a clock.

`state` is the cluster as arrays and gangs, changed by events; `cycle` plans on a snapshot of it: a `framework` session
in which `plugins` register hooks and `actions` leave decisions. They use `topology` (domains of nodes), `fairshare`
(what a queue may have), `victims` (pods to evict), `dynamic` (devices that pods claim), `scaleup` (requests to
autoscalers) and `configuration` (actions and plugins as a file names them). `ask` is what one gang wants. `ledger` is
the one account of room that is not free, with a table of its kinds of entries, with its sums by queue in `limits`.
`reasons` has every sentence that a waiting user reads, by topic: the text of a quota's refusal is in `reasons.queues`.

`api` is what others may import.

Promises that the same state, times and configuration give the same decisions. Must not import what serves, watches or
writes (the rest of `extender`) nor `muster.kube`. Start with `cycle`.
"""

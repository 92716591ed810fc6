"""Decisions about the nodes of pods: pure, without I/O and without a clock.

`state` is the cluster as arrays and gangs, changed by events; `cycle` plans on a snapshot of it: a `framework` session
in which `plugins` register hooks and `actions` leave decisions. They use `topology` (domains of nodes), `fairshare`
(the shares of queues), `victims` (pods to evict), `dynamic` (devices that pods claim), `scaleup` (requests to
autoscalers) and `configuration` (actions and plugins as a file names them). `ask` is the demand of one gang. `ledger`
is the one account of capacity that is not free, with a table of its kinds of entries; `limits` has its sums by queue.
`reasons` has every sentence about waiting, by topic: the text of a quota's refusal is in `reasons.queues`.

`api` lists the names that other packages may import.

The same state, times and configuration always give the same decisions. The package must not import `muster.kube` or the
rest of `extender`, which serves, watches and writes. Start with `cycle`.
"""

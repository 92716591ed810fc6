"""The part of the extender that decides on which nodes pods run; pure, without I/O and without a clock.

`state` has the cluster as arrays and gangs, and events change it. `cycle` plans on a snapshot, in a `framework` session
in which `plugins` register hooks and `actions` leave decisions. Plugins and actions use `topology` (domains of nodes),
`fairshare` (shares of queues), `victims` (pods to evict) and `dynamic` (devices that pods claim). Plugins and actions
also use `scaleup` (requests to autoscalers) and `configuration` (actions and plugins that a file names). `ask` computes
the demand of one gang. `ledger` accounts for the capacity that is not free, and lists the kinds of its entries;
`limits` has the sums by queue. `reasons` has every sentence about waiting, by topic; for example, `reasons.queues` has
the refusal by a quota.

`api` lists the names that other packages may import.

The same state, times and configuration always lead to the same decisions. The package must not import `muster.kube` or
the rest of `extender`, which serves, watches and writes. Start reading at `cycle`.
"""

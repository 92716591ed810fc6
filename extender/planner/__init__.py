"""The part of the extender that decides on which nodes pods run. It does no I/O and reads no clock.

`state` holds the cluster as arrays and gangs, and is updated by watch events. `cycle` plans on a snapshot of the state,
in a `framework` session: `plugins` register hooks in the session, and `actions` add decisions to it. Plugins and
actions use `topology` (domains of nodes), `fairshare` (shares of queues), `victims` (pods to evict) and `dynamic`
(devices that pods claim). Plugins and actions also use `scaleup` (requests to autoscalers) and `configuration` (actions
and plugins that a file names). `ask` computes the demand of one gang. `ledger` accounts for the capacity that is not
free, and lists the kinds of ledger entries. `limits` has the sums of these entries by queue. `reasons` has every
message that explains why a gang waits, by topic. For example, `reasons.queues` has the message for an exceeded quota.

`api` lists the names that other packages may import.

The same state, times and configuration always lead to the same decisions. The package must not import `muster.kube` or
other packages of `extender`, which serve HTTP requests, watch objects and write to the API server. Start reading at
`cycle`.
"""

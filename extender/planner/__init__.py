"""The planner, which decides on which nodes pods run, without I/O and without reading a clock.

`state` holds the cluster as arrays and gangs, and is updated by watch events. `cycle` plans on a snapshot of the state,
in a `framework` session. `plugins` register hooks in the session, and `actions` add decisions to it. Plugins and
actions use `topology` (domains of nodes), `fairshare` (shares of queues), `victims` (pods to evict) and `dynamic`
(devices that pods claim). Plugins and actions also use `scaleup` (requests to autoscalers) and `configuration` (the
actions and plugins of a file). `ask` computes the demand of one gang. `ledger` records the capacity of each node that
is not free. `limits` checks the limits of queues. `reasons` has every message that explains why a gang waits, by topic;
for example, `reasons.queues` has the message for an exceeded quota.

`api` lists the names that other packages may import.

The same state, times and configuration always lead to the same decisions. The package must not import `muster.kube` or
other packages of `extender`, which serve HTTP requests, watch objects and write to the API server. Start reading at
`cycle`.
"""

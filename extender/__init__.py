"""The scheduler extender, which decides where pods run.

The extender is one process that runs beside a stock kube-scheduler in the same pod. `planner/` makes the decisions and
is pure; the other modules serve, watch and write. `cluster` updates the planner's state from watches, `cycles` runs
planning cycles in a thread, and `commit` writes the decisions: `placements` writes a Placement before any other write
depends on it. `groupstatus` and `clusterstatus` write statuses; `placementcontent` and `groupcontent` compute the
content of the statuses and placements. `app` answers kube-scheduler with the `verbs/`, and `barrier` holds the bind
calls of a starting gang. `explain/` runs a cycle over a dump of the cluster. `main` creates all parts and connects
them.

No gang stays partly placed. If the extender is uncertain, it answers with an error, never with a rejection. The package
must not import webhook or controller. Start reading at `cycles`: its `cycle` has numbered steps.
"""

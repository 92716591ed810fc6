"""The scheduler extender, which decides where pods run.

The extender is one process that runs beside a stock kube-scheduler in the same pod. `planner/` makes the decisions and
does no I/O. All other modules serve requests, watch objects and write to the API server. `cluster` updates the
planner's state from watches, `cycles` runs planning cycles in a thread, and `commit` writes the decisions: `placements`
writes a Placement before any other write depends on it. `groupstatus` and `clusterstatus` write statuses;
`placementcontent` and `groupcontent` compute the content of the statuses and placements. `app` answers kube-scheduler's
calls by means of `verbs/`, and `barrier` holds the bind calls of a gang that is starting. `explain/` explains decisions
by means of a cycle over a dump of the cluster. `main` creates all parts and connects them.

No gang stays partly placed. If the extender is not certain, it answers with an error instead of a rejection, and
kube-scheduler tries again. The package must not import webhook or controller. Readers of the code start with `cycles`,
which numbers the steps of a cycle.
"""

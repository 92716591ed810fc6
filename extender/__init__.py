"""The scheduler extender, which decides where pods run.

It is one process next to a stock kube-scheduler. `planner/` makes the decisions and is pure; the other modules serve,
watch and write. `cluster` updates the planner's state from watches, `cycles` runs planning cycles in a thread, and
`commit` writes the decisions: a Placement (`placements`) before anything acts on it. `groupstatus` and `clusterstatus`
write statuses; `placementcontent` and `groupcontent` compute their content. `app` answers kube-scheduler with the
`verbs/`, and `barrier` holds the bind calls of a starting gang. `explain/` runs a cycle over a dump of the cluster.
`main` connects the parts.

No gang stays partly placed, and an uncertain answer is an error, never a rejection. The package must not import webhook
or controller. Start with `cycles`, whose cycle has numbered steps.
"""

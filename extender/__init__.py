"""The scheduler extender: where pods run.

One process beside a stock kube-scheduler. `planner/` decides, pure; the other modules serve, watch and write.
`cluster` feeds the planner's state from watches, `cycles` runs planning cycles in a thread, `commit` writes their
decisions: each gang's as a Placement (`placements`) before anything acts on it. `groupstatus` and `clusterstatus` write
statuses; `placementcontent` and `groupcontent` compute what is written. `app` answers kube-scheduler with the `verbs/`,
`barrier` holds the bind calls of a gang that starts. `explain/` runs a cycle over a dump of the cluster. `main` wires
the parts together.

Promises that no gang stays half placed, and that an answer which is not certain is an error, never a rejection. Must
not import webhook or controller. Start with `cycles`: its cycle has numbered steps.
"""

"""The scheduler extender, which decides where pods run.

The extender is one process. It runs in the same pod as an unmodified kube-scheduler. `planner/` makes the decisions and
does no I/O. The modules outside `planner/` serve requests, watch objects and write to the API server. `cluster` updates
the planner's state from watches, `cycles` runs planning cycles in a thread, and `commit` writes the decisions.
`placements` writes a Placement before any write that depends on the Placement. `groupstatus` and `clusterstatus` write
statuses; `placementcontent` computes the content of placements, and `groupcontent` the content of PodGroup statuses.
`app` answers kube-scheduler's calls by means of `verbs/`, and `barrier` holds the bind calls of a gang that is
starting. `explain/` explains decisions by means of a cycle over a dump of the cluster. `main` creates all parts and
connects them.

No gang stays partially placed. If the extender cannot decide about a pod yet, it answers with an error instead of a
rejection, so that kube-scheduler tries the pod again. The package `extender` must not import the packages `webhook` and
`controller`. Start reading at `cycles`, which numbers the steps of a cycle.
"""

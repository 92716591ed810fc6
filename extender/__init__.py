"""The scheduler extender: where pods run.

One process beside a stock kube-scheduler. `state` is the cluster as arrays and gangs, kept by the watches of `cluster`;
`dynamic` counts the devices that pods claim.
A thread, `planner`, decides whole gangs on a snapshot of it: `cycle` is how, with `framework` (what a cycle is),
`actions` (its steps) and `plugins` (what they ask). `commit` and `statuses` write the decisions, each gang's as a
Placement before anything acts on it; `verbs` carry placements out when kube-scheduler asks, with the `barrier` for
gangs that start. `explain` says what the planner would do and why. `callers` says whom
it answers; `main` wires all of it together.

It promises that no gang stays half placed, and that what is not certain is an error, never an answer. `state`,
`framework`, `actions`, `plugins`, `cycle` and `explain` do no I/O and read no clock. It must not import webhook or
controller. Start at `planner`: its cycle has numbered steps.
"""

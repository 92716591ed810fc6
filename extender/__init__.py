"""The scheduler extender: where pods run.

A planner thread decides whole gangs over arrays of the cluster, writes each decision as a Placement before anything
acts on it, and the three verbs (filter, prioritize, bind) carry it out for a stock kube-scheduler. `framework`,
`actions` and `plugins` think and do no I/O; `planner`, `commit`, `barrier` and `verbs` act. Never imports webhook or
controller.
"""

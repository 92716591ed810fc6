"""The verbs of a scheduler extender that kube-scheduler calls: filter, prioritize, bind and preempt.

If the answer is uncertain, a verb returns an error instead of a rejection or a success, and kube-scheduler retries.
filter and prioritize only read memory, because kube-scheduler waits for their answers; only bind waits and writes. The
verbs import the framework, the cluster and the barrier. The verbs must not import the actions. `planner.reasons.verbs`
contains all refusals. Readers of the code start with `filter`.
"""

"""The verbs of a scheduler extender that kube-scheduler calls: filter, prioritize, bind and preempt.

If the answer is uncertain, a verb returns an error, after which kube-scheduler retries, and never a rejection or a
success. filter and prioritize only read memory, because kube-scheduler waits for them; only bind waits and writes. The
verbs import the framework, the cluster and the barrier. The verbs must not import the actions. `planner.reasons.verbs`
contains all refusals; start reading at `filter`.
"""

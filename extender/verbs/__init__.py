"""Verbs of a scheduler extender, which kube-scheduler calls: filter, prioritize, bind and preempt.

An uncertain answer is an error (kube-scheduler retries), never a rejection or a success. filter and prioritize only
read memory, because kube-scheduler waits for them; only bind waits and writes. The verbs import the framework, the
cluster and the barrier. The verbs must not import the actions. `planner.reasons.verbs` contains all refusals; start
reading at `filter`.
"""

"""Verbs of a scheduler extender, which kube-scheduler calls: filter, prioritize, bind and preempt, a module each.

They promise that an uncertain answer is an error (kube-scheduler tries again), never a rejection and never a success.
They promise that filter and prioritize only look into memory, since kube-scheduler does nothing else meanwhile; and
that only bind waits and writes. They import the framework, the cluster and the barrier, and must not import the
actions. Every answer other than yes is in `planner.reasons.verbs`; start at `filter`.
"""

"""What kube-scheduler asks the extender: filter, prioritize, bind and preempt, a module each.

They promise that whatever is not certain is an error (kube-scheduler tries again), never a rejection and never a
success; that filter and prioritize only look up what memory holds, since kube-scheduler does nothing else meanwhile;
and that only bind waits and writes. They import the framework, the cluster and the barrier, and must not import the
planner or the actions. Start at `reasons`, which has every answer other than yes, then read `filter`.
"""

"""What kube-scheduler asks the extender: filter, prioritize, bind and preempt, a module each.

Whatever is not certain is an error (kube-scheduler tries again), never a rejection. Filter and prioritize are look-ups
in memory, since kube-scheduler does nothing else meanwhile; only bind waits and writes. Imports the framework, the
cluster and the barrier; never the planner or the actions.
"""

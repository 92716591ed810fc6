"""The verbs of a scheduler extender that kube-scheduler calls: filter, prioritize, bind and preempt.

If a verb cannot decide yet, it returns an error instead of a rejection or a success, and kube-scheduler tries again.
The verbs filter and prioritize only read memory, because kube-scheduler waits for their answers; only bind waits and
writes. The verbs' modules may import the planner's framework, the cluster and the barrier. These modules must not
import the planner's actions. `planner.reasons.verbs` contains the reasons for all refusals. Start reading at `filter`.
"""

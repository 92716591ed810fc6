"""Fair shares of queues as arithmetic: no session, no I/O, no clock.

Start reading at `division`, which divides one resource. `tree` is the tree of queues; `allocations` has the resources
that queues use and wait for. `shares` computes the fair shares of queues, and `order` their scheduling order.
`refusals` has the reasons to refuse a gang, `budgets` the usage of budgets, and `reclaim` the rules for evicting gangs
of other queues. The formulas are KAI-Scheduler's (plugins/proportion), applied to the fields of Volcano's Queue. The
package must not import actions or plugins.
"""

"""Fair shares of queues, as arithmetic: no session, no I/O, no clock.

Start at `division`, which splits one resource. `tree` is the tree of queues, `allocations` the amounts that they use
and wait for. `shares` has their fair shares, `order` their scheduling order. `refusals` has the reasons to refuse a
gang, `budgets` the usage of budgets, `reclaim` the rules for evicting gangs of other queues. The formulas are those of
KAI-Scheduler (plugins/proportion), applied to Volcano's Queue fields. The package must not import actions or plugins.
"""

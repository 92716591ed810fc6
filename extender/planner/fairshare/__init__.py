"""Fair shares of queues, as arithmetic: no session, no I/O, no clock.

Start at `division`, which splits one resource. `tree` is the tree of queues, `allocations` the amounts that they use
and wait for, `shares` their fair shares, `order` their scheduling order. `refusals` has what they refuse, `budgets`
what is used of their budgets, `reclaim` the rules for evicting gangs of other queues. The formulas are those of
KAI-Scheduler (plugins/proportion) over Volcano's Queue fields. It must not import actions or plugins.
"""

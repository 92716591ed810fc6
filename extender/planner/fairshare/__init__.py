"""Computation of queues' fair shares, as arithmetic without a session, I/O or a clock.

Start reading at `division`, which divides one resource. `tree` builds the tree of queues, and `allocations` adds up the
resources that queues use and wait for. `shares` computes the fair shares of queues, and `order` computes their
scheduling order. `refusals` determines whether a queue rejects a gang, `budgets` computes how much of a usage budget is
used, and `reclaim` has the rules for evicting gangs of other queues. The formulas are from KAI-Scheduler
(plugins/proportion), applied to the fields of Volcano's Queue. The package must not import actions or plugins.
"""

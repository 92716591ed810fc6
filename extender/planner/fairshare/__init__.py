"""What each queue may have, is due and uses: the arithmetic of fair shares, without a session and without I/O.

It reads no clock either. Start at `division`, which splits one resource; `tree` is the queues and what they use,
`order` whose turn it is, `capacity` what a queue refuses, `reclaim` who may take from whom. The formulas are those of
KAI-Scheduler (plugins/proportion) over Volcano's Queue fields. It must not import actions or plugins.
"""

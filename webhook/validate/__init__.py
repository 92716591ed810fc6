"""Validations: what is wrong with an object, all of it at once: field path, value, and what would be right.

A module per kind has the handler: `batch_job`, `trainjob`, `trainingruntime`, `podgroup`, `command`, `hypernode`,
`pod` (with the budgets in `disruption`); `volcano_job/` and `queues/` are kinds with more rules than fit into one.
`frameworks` is what they share: whether the pods of a template could be shaped. Start reading at `podgroup`, the
shortest, or at `volcano_job.job`.

Promises to look at everything before it answers, to refuse early what would be found out late (the pods of a Job, when
nobody watches any more), and to let an object go that is being deleted. It does no I/O of its own, and must not import
webhook.mutate.
"""

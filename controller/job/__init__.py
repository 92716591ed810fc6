"""The life of a Volcano Job: what happened to it, what follows from that, and who carries it out.

`rules` decides. Here are the edges, in the order of a pass: `pending_events` has what happened, `reconcile` runs the
pass, `actions` and `commands` enter phases, `provision` makes what pods need and the pods (with `objects`, `groups` and
`effects`), `writer` writes the status. `context` is what all of them share, `expectations` what this process did and
its caches do not show yet, `gc` deletes Jobs whose time after their end is over.

Promises that one pass does whatever it can: a failure is told at the Job and holds up nothing that does not need it.
It must not import the controllers of queues and gangs. Start with `reconcile.Reconciler.process`.
"""

"""The life of a Volcano Job: its events, the decisions that follow from them, and the calls that carry them out.

`rules` decides. Here are the edges, in the order of a pass: `controller` turns changes into events, which
`pending_events` keeps, `reconcile` runs the pass, `actions` enters phases. `provision` makes the pods and the objects
that they need (with `objects` and `effects`), `writer` writes the status. `context` has the caches and clients that all
of them share, `expectations` the writes that caches do not show yet.

Promises that a failure is reported at the Job and holds up only the work that depends on it. It must not import the
controllers of queues and gangs. Start with `rules.policies`, then `reconcile.Reconciler.process`.
"""

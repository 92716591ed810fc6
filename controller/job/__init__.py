"""Volcano Jobs: their events, the resulting decisions, and the calls that carry them out.

`rules` decides. The other modules do I/O, in the order of a pass: `controller` derives events from changes, and
`pending_events` stores them. `reconcile` runs the pass, and `actions` enters phases. `provision` creates the pods and
the objects that they need (with `objects` and `effects`), and `writer` writes the status. `context` contains the shared
caches and clients, and `expectations` the writes that the caches do not contain yet.

A failure is reported on the Job and only delays the work that depends on it. The package must not import the
controllers of queues and gangs. Readers of the code start with `rules.policies`, then `reconcile.Reconciler.process`.
"""

"""The controller of Volcano Jobs, which derives events from changes, decides on actions, and carries out the actions.

`rules` makes the decisions. All other modules do I/O, in the order of a pass: `controller` derives
events from changes, and `pending_events` stores them. `reconcile` runs the pass, and `actions` carries out actions,
which change the phase. `provision` creates pods and the objects that pods need (with `objects` and `effects`), and
`writer` writes the status. `context` contains the shared caches and clients, and `expectations` the writes that the
caches do not contain yet.

A failed call is reported in the Job's status and delays only the work that depends on its success. The package must not
import the controllers of queues and gangs. Start reading at `rules.policies`, then read `reconcile.Reconciler.process`.
"""

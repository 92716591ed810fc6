"""The life of a TrainJob: its runtime, what is made for it, and what becomes of that.

`rules` decides. Here are the edges, in the order of a pass: `runtimes` has the version of the runtime that admission
saw, `children` knows what exists for a TrainJob and carries out what the rules decide, `writer` writes the status,
`reconcile` puts them together, `controller` turns changes into keys. `report` takes what trainers tell of themselves,
`finalizers` frees runtimes.

Promises that a TrainJob which has ended stays so, and that a pass over one that is as it should be writes nothing. It
must not import the controllers of Jobs, queues and gangs: it talks to them through the API. Start with
`reconcile.Reconciler.process`.
"""

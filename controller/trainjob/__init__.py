"""The life of a TrainJob: its runtime, the objects made for it, and its status.

`rules` decides; the modules here do I/O, in the order of a pass: `runtimes` has the version of the runtime that
admission saw, and frees runtimes of an old finalizer. `children` reads the objects that exist for a TrainJob and takes
the steps that the rules decide, `controller` turns changes into keys, puts the steps together and writes the status.
`watched` has the objects of kinds that plugins build and watch, `report` takes reports of trainers.

Promises that a TrainJob that has ended stays ended, and that a pass over an up-to-date TrainJob writes nothing. It
must not import the controllers of Jobs, queues and gangs: it talks to them through the API. Start with
`controller.TrainJobs.process`.
"""

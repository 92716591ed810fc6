"""TrainJobs: the runtime, the created objects, and the status of each TrainJob.

`rules` decides; the other modules do I/O, in the order of a pass: `runtimes` finds the version of the runtime that
admission used, and removes an old finalizer from runtimes. `children` reads the existing objects of a TrainJob and
carries out the steps of the rules, and `cleanup` deletes the remaining objects at the end. `controller` queues the keys
of changed TrainJobs, runs the passes and writes the status. `watched` has the objects of kinds that plugins build and
watch, `report` receives reports of trainers.

A TrainJob that has ended stays ended, and a pass over an up-to-date TrainJob writes nothing. The package must not
import the controllers of Jobs, queues and gangs: it communicates with them through the API. Readers of the code start
with `controller.TrainJobs.process`.
"""

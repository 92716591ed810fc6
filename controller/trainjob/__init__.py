"""The controller of TrainJobs: it finds the runtime of each TrainJob, creates objects, and writes the status.

`rules` makes the decisions. All other modules do I/O, in the order of a pass: `runtimes` finds the version of the
runtime that admission used. `children` reads the existing objects of a TrainJob and carries out steps, and `cleanup`
deletes the remaining objects at the end. `controller` queues the keys of changed TrainJobs, runs the passes and writes
the status. `watched` caches the objects of kinds that plugins build and watch, and `report` receives the reports of
trainers.

A TrainJob that has ended stays ended, and a pass over an up-to-date TrainJob writes nothing. The package must not
import the controllers of Jobs, queues and gangs: it communicates with them through the API. Start reading at
`controller.TrainJobs.process`.
"""

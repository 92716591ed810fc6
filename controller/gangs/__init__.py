"""Gangs of pods that are not a Volcano Job's: their PodGroups, Services, and the keys and hostfiles of MPI.

`podgroups` creates, changes and ends the PodGroup of pods, as `muster.workloads.podgroup` describes it,
`rendezvous` makes the objects by which shaped pods find each other. Must not import the controllers of Jobs and
TrainJobs. Start with `podgroups.PodGroups.process`.
"""

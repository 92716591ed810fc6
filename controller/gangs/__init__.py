"""Gangs of pods outside Volcano Jobs: their PodGroups and Services, and keys and hostfiles for MPI.

`podgroups` creates, changes and ends the PodGroups that `muster.workloads.podgroup` describes. `rendezvous` creates the
objects by which the pods of a framework find each other. The package must not import the controllers of Jobs and
TrainJobs. Readers of the code start with `podgroups.PodGroups.process`.
"""

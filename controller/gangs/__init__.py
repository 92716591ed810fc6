"""Gangs of pods outside Volcano Jobs: their PodGroups and Services, and their ssh keys and hostfiles for MPI.

`podgroups` creates, changes and completes PodGroups; `muster.workloads.podgroup` computes their content. `rendezvous`
creates the objects by which the pods of a framework find each other. The package must not import the controllers of
Jobs and TrainJobs. Start reading at `podgroups.PodGroups.process`.
"""

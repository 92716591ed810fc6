"""Gangs of pods that are not a Volcano Job's: `workloads` says which (pure), `podgroups` and `rendezvous` see to it."""

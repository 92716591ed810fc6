"""The decisions about a Volcano Job: pure functions of objects, without I/O and without a clock.

`events` turns changes of pods, PodGroups and Commands into requests; `policies` finds the action of a request, its cell
in the table of phases and the pods that it deletes; `phases` counts pods and finds the phase that follows. `sync` says
which pods a Job lacks, `timers` which actions wait for a timeout, `backoff` how long new pods wait, `status` what the
Job's status says, `notes` what the controller keeps there for itself. The modules of `controller.job` carry it out.

Promises the same answer for the same objects, so its tests need no mocks. It must not import `muster.kube`. Start with
`policies`, whose docstring follows one event from the pod to the next phase.
"""

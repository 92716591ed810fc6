"""The decisions about a Volcano Job: pure functions of objects, without I/O and without a clock.

`events` turns changes of pods, PodGroups and Commands into requests. `policies` finds the action of a request, its cell
in the table of phases and the pods that it deletes. `phases` counts pods and finds the phase that follows. `sync` finds
the pods that a Job lacks, `timers` has delays of actions and new pods, `status` makes the Job's status, with `notes` of
the controller for itself. The modules of `controller.job` carry it out.

Promises the same answer for the same objects, so its tests need no mocks. It must not import `muster.kube`. Start with
`policies`, whose docstring follows one event from the pod to the next phase.
"""

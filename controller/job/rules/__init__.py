"""The decisions about Volcano Jobs: pure functions of objects, without I/O and without a clock.

`events` derives requests from changes of pods, PodGroups and Commands. `policies` finds the action for a request, the
action's effect in the current phase, and the pods to delete. `phases` counts pods and finds the next phase. `sync`
finds missing pods, `timers` delays actions and new pods, and `status` builds the Job's status. `notes` stores the
controller's own data in the status. The modules of `controller.job` carry out these decisions.

The same objects always give the same result, so tests need no mocks. The package must not import `muster.kube`. Start
reading at `policies`, whose docstring follows one event from the pod to the next phase.
"""

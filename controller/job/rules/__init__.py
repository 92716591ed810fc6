"""What happens to a Volcano Job, decided: pure functions of objects, no I/O, no clock.

`request` is what happened, `events` makes it from changes of pods and PodGroups, `policies` finds its action, `machine`
says what that does in the Job's phase, `sync` and `kill` which pods come and go, `status` what the Job says of itself.
The modules of `controller.job` carry it out. It must not import `muster.kube`.
"""

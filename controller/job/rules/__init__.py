"""What happens to a Volcano Job, decided: pure functions of objects, no I/O, no clock.

`request` is what happened, `events` makes it from changes of pods, PodGroups and Commands, `policies` finds its action,
`machine` says what that does in the Job's phase and which phase follows, `sync` and `kill` which pods come and go,
`pods` and `podgroup` what is created, `timers` what waits for its time, `outcome` and `status` what the Job says of
itself. The modules of `controller.job` carry it out.

Promises the same answer for the same objects; that is why it needs no mocks in tests. It must not import `muster.kube`.
Start with the table in `machine`.
"""

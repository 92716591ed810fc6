"""What a TrainJob needs next, and what its status is: pure functions of objects and times.

`steps` decides what is to be made, changed and deleted; `counts` counts Jobs as a JobSet does; `outcome` says when it
has ended and why; `conditions` what its status says, `deadline` how long it may go on. `children` has what exists,
`manifests` what is written on whatever is made. Promises no I/O and no clock. Start with `steps.decide`.
"""

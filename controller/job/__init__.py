"""The life of a Volcano Job.

`rules` decide what happens to a Job, `muster.volcano` says what its pods and its gang are: pure functions of objects,
no I/O, no clock. The modules here carry out what these decided; `expectations` holds what this process did but its
caches do not show yet. Decisions must not import `muster.kube`.
"""

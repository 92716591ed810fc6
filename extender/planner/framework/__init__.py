"""The session framework: what plugins and actions see and do.

`snapshot` is the copy of the state that one cycle plans on, `session` one cycle over it, `hooks` the table of all that
a plugin can register, `statement` the log that makes a trial undoable, `decisions` what a cycle leaves, `shortage` what
a gang lacks that waits, `registry` and `config` which plugins and actions run.

It promises no I/O and no clock: objects and times are handed in. It imports `planner.topology`, `planner.state` and
`planner.reasons`, and must not import muster.kube or anything else of the extender. Start at `session`.
"""

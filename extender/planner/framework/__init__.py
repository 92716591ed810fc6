"""The session framework: what plugins and actions see and do.

`snapshot` is the copy of the state that one cycle plans on, `session` one cycle over it, `hooks` the table of all that
a plugin can register, `statement` the log that makes a trial undoable, `decisions` what a cycle leaves, `shortage` and
`groupstatus` how a gang is told why it waits and how far it is, `registry` and `config` which plugins and actions run.

It promises no I/O and no clock: objects and times are handed in. It imports `planner.state`, and must not import
muster.kube or anything else of the extender. Start at `session`.
"""

"""The session framework: what plugins and actions see and do.

`state` keeps the cluster as arrays and gangs, `snapshot` is the copy that one cycle plans on, `hooks` is the table of
everything a plugin can register, `session` one cycle, `statement` the log that makes every decision undoable. It
promises no I/O and no clock: objects and times are handed in. It must not import muster.kube, or anything of the
extender outside of this folder.
"""

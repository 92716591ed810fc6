"""The commands of `muster`: each reads its options, calls what does the work, and prints for people.

A module is called after its command; `plane` has the short ones on a plane that exists (status, down, kubectl, config),
`explain` has snapshot too, and `jobrun` and `jobview` are the long halves of `job`. Promises that a failure is one
readable message and a non-zero exit code, never a traceback, and that a command is imported only when it is used: start
reading at `musterctl.app`, which has the table. Nothing may import a command but that table and other commands.
"""

"""The commands of `muster`: each command reads its options, calls the packages that do the work, and prints the result.

Most modules are named after their command. `plane` also contains status, restart, down and kubectl; `explain` also
contains snapshot and topo; `config` contains render. `jobview` is a part of `job`, `queuechange` and `queuespec` are
parts of `queue`, and `trainfile` and `trainjobs` are parts of `train`.

A failure causes one readable message and a non-zero exit code, never a traceback. A command is imported only when it is
used. Start reading at `musterctl.app`, the table of commands. Only this table and other commands may import a command.
"""

"""One module per command of `muster`: it reads options, calls what does the work, and prints for people.

A failure is one readable message and a non-zero exit code, never a traceback, and a command is imported only when it
is used: start reading at `musterctl.app`, which has the table.
"""

"""The command line `muster` (and `kubectl muster`): one module per command.

What lives here reads options, calls what does the work, and prints for people. It promises that a failure is one
readable message and a non-zero exit code, never a traceback, and that a command is imported only when it is used.
Nothing may import it.
"""

from muster.cli.app import main

__all__ = ["main"]

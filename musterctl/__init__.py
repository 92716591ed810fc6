"""The command line `muster` (and `kubectl muster`), and the embedded control plane behind `muster up`.

`app` is the table of the commands, `commands/` has a module for each, `manifests/` what they read, `output/` what they
print, `plane/` the control plane. It is the only place that imports everything; nothing may import it.
"""

from musterctl.app import main

__all__ = ["main"]

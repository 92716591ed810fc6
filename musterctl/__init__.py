"""The command line `muster` (and `kubectl muster`), and the embedded control plane behind `muster up`.

Start reading at `app`, the table of the commands. `commands/` has their modules, `manifests/` reads manifests,
`output/` prints, and `plane/` is the control plane; `options` are those that several commands share, `cluster` chooses
and dumps a cluster, and `objects` reads and writes objects in it. `generate` is `make generate`.

Promises one readable message for each failure. It is the only package that imports all others; none may import it.
"""

from musterctl.app import main

__all__ = ["main"]

"""The command line `muster` (and `kubectl muster`), and the embedded control plane behind `muster up`.

Start reading at `app`, the table of the commands. `commands/` has their modules, `manifests/` what they read, `output/`
what they print, and `plane/` the control plane; `options` are those that several commands share, `cluster` and
`objects` how they look at a cluster and at objects in it. `generate` is `make generate`.

Promises that people meet one readable message where something goes wrong. It is the only place that imports everything;
nothing may import it.
"""

from musterctl.app import main

__all__ = ["main"]

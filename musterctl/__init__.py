"""The command line `muster` (and `kubectl muster`), and the local control plane that `muster up` starts.

Start reading at `app`, the table of commands. `commands/` has one module per command, and `output/` prints tables and
reports. `plane/` runs the local control plane, `kind/` runs a control plane in containers, and `chart/` reads the Helm
chart. `options` has the options that several commands share, and `settings` the settings of processes. `cluster`
chooses a cluster and accesses its objects; `gangobjects` reads the objects for lists of gangs. `reader` reads the input
of reports. This module is separate from `cluster`, because importing the planner takes a second. `generate` implements
`make generate`; `facts` has the facts that it writes into the documentation.

Each failure causes one readable message. This package may import all other packages; no other package may import it.
"""

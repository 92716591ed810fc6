"""The command line `muster` (and `kubectl muster`), and the embedded control plane behind `muster up`.

Readers of the code start with `app`, the table of commands. `commands/` has one module per command, `output/` prints
tables and reports, `plane/` runs the local control plane, `kind/` a control plane in containers, and `chart/` reads the
Helm chart. `options` are the options that several commands share, and `settings` the settings of processes. `cluster`
chooses a cluster and accesses its objects; `gangobjects` reads the objects for lists of gangs. `reader`, which reads
the input of reports, is separate, because it imports the planner, which takes long. `generate` implements
`make generate`, with the `facts` of the documentation.

Each failure causes one readable message. This package may import all other packages; no other package may import it.
"""

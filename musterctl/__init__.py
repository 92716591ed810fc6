"""The command line `muster` (and `kubectl muster`), and the embedded control plane behind `muster up`.

Start reading at `app`, the table of the commands. `commands/` has their modules, `output/` prints, `plane/` is the
control plane, `kind/` one in containers, and `chart/` the Helm chart. `options` are those that several commands share,
`settings` those of processes, `cluster` chooses a cluster, reads and writes objects in it, and `gangobjects` reads what
rows of gangs are made of. What commands that plan share has the planner with it, which takes long to import:
`planningoptions`, and `reader`, of dumps of a cluster. `generate` is `make generate`, with the `facts` of the
documentation.

Promises one readable message for each failure. It is the only package that imports all others; none may import it.
"""

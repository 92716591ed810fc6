"""From wire types to CustomResourceDefinitions and the pages about them, for `make generate`.

The Structs of muster.api are the source. The files kinds.yaml and overlays.yaml add the parts that a Struct cannot have
(printer columns, CEL rules, server-side defaults), `openapi` the API server's own schema of pod templates. `files`
lists the kinds and writes them out. Promises that equal sources give equal bytes, and reads no file but its own. It
must not import a client of the API server. Start with `schema`, then `files`.
"""

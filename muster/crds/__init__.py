"""Generator of CustomResourceDefinitions and their pages from the wire types, for `make generate`.

The Structs of muster.api are the source. The files kinds.yaml and overlays.yaml add properties that a Struct cannot
express (printer columns, CEL rules, server-side defaults). `openapi` adds the API server's own schema of pod templates.
`files` lists the kinds and produces the files. Equal sources give equal bytes, and the package reads only its own
files. It must not import a client of the API server. Start with `schema`, then `files`.
"""

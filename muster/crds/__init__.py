"""Generator of CustomResourceDefinitions and their pages from the wire types, for `make generate`.

The Structs of muster.api are the source. The files kinds.yaml and overlays.yaml add properties that a Struct cannot
express (printer columns, CEL rules, server-side defaults). `openapi` adds the API server's own schemas of pod
templates. `files` lists the kinds and produces the files. Equal sources produce identical files. The package reads only
its own files. The package must not import a client of the API server. Readers of the code start with `schema`, then
`files`.
"""

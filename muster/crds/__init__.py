"""Generator of CustomResourceDefinitions, and of pages about them, from the wire types, for `make generate`.

The Structs of muster.api are the source of the generated files. The files kinds.yaml and overlays.yaml add properties
that a Struct cannot express (printer columns, CEL rules, server-side defaults). `openapi` adds the API server's own
schemas of pod templates. `files` lists the kinds and produces the files. Equal sources produce identical generated
files. The package `muster.crds` reads only its own files. The package `muster.crds` must not import a client of the API
server. Start reading at `schema`, then continue with `files`.
"""

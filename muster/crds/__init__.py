"""From wire types to CustomResourceDefinitions: what `make generate` writes.

The Structs of muster.api are the source; this package adds what a Struct cannot say (printer columns, CEL rules,
server-side defaults) and the API server's own schema of pod templates. It promises that equal sources give equal bytes,
reads no file but its own core.json, and must not import anything that talks to an API server. Start with `definitions`
for what a kind has, `schema` for how a Struct becomes a schema.
"""

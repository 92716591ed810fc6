"""Wire types as msgspec Structs, one module per API group.

They are the single source of the CRDs in charts/muster/crds. What lives here is data and pure functions of data; beside
the types that is what everybody says in the same way: `names` (labels, annotations, …), `fields` (errors of fields),
`endpoints` (host names), `mergepatch`. It promises to decode what the API server sends (unknown fields are dropped) and
must import nothing of Muster's. Start with `batch`, a Volcano Job, and `meta`, what every object has.
"""

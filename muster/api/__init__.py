"""Wire types as msgspec Structs, one module per API group.

They are the single source of the CRDs in charts/muster/crds, with a docstring for each field, which users read. What
lives here is data and pure functions of data: `names` has every label and annotation, `meta` what all objects have,
`gang` and `placement` how a gang stands on the wire, `merge_diff` what a patch has to say. Kubernetes' own objects
(`core`, `constraints`, `apps`, `storage`) are trimmed to what Muster reads.

Promises to decode what the API server sends (unknown fields are dropped), and must import nothing of Muster's. Start
with `base`, then `batch`.
"""

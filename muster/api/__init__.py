"""Wire types as msgspec Structs, one module per API group.

They are the single source of the CRDs in charts/muster/crds. What lives here is data and pure functions of data; it
promises to decode what the API server sends (unknown fields are dropped) and must import nothing of Muster's.
"""

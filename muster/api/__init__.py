"""Wire types as msgspec Structs, a folder per origin: `kubernetes/`, `volcano/`, `kubeflow/` and `muster/`.

The types of custom resources are the single source of the CRDs; `kubectl explain` shows the docstring of a field. At
this level: `base` (the Struct base, resource descriptors), `names` (labels and annotations), `limits` (the upper bound
of every user-supplied number). Also `fields` (errors with the path of a field), `merge_diff` (the merge patch between
two objects), `unchecked` (JSON of unknown shape) and `grammar` (numbers and lists in sentences).

Contains only data and pure functions of data: decoding drops unknown fields, and nothing does I/O or reads a clock.
Imports no other part of Muster. Start with `base`, then `volcano/batch`.
"""

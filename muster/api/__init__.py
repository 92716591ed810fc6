"""Wire types as msgspec Structs, a folder per origin: `kubernetes/`, `volcano/`, `kubeflow/` and `muster/`.

The types of custom resources are the single source of the CRDs; `kubectl explain` shows the docstring of a field.
`base` has the Struct base and resource descriptors, `names` the labels and annotations, and `limits` the upper bound of
every user-supplied number. `fields` has errors with a field's path, `merge_diff` the merge patch between two objects,
`unchecked` JSON of unknown shape, and `grammar` numbers and lists in sentences.

The package contains only data and pure functions: no function does I/O or reads a clock. Decoding drops unknown fields.
The package imports no other part of Muster. Readers of the code start with `base`, then `volcano/batch`.
"""

"""Wire types as msgspec Structs, a folder per origin: `kubernetes/`, `volcano/`, `kubeflow/` and `muster/`.

The types of custom resources are the single source of the CRDs; `kubectl explain` shows the docstrings of their fields.
`base` has the Struct base and resource descriptors, `names` the labels and annotations, and `limits` the upper bound of
every user-supplied number. `fields` has errors with a field's path, and `merge_diff` the merge patch between two
objects. `unchecked` reads JSON of unknown shape, and `grammar` writes numbers and lists in sentences.

The package contains only data and pure functions: no function does I/O or reads a clock. Decoding an object drops its
unknown fields. The package `muster.api` imports no other part of Muster. Start reading at `base`, then continue with
`volcano/batch`.
"""

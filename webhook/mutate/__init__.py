"""Mutations, one module per kind: defaults, labels, env. Functions of the object and what was looked up; no I/O."""

"""Validations, one module per kind: all errors at once, each with field path, value and what would be right. No I/O."""

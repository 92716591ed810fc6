"""Manifests that commands read: YAML with its line numbers, what they name, and the pods that they would have.

Nothing here prints, and nothing here writes to a cluster.
"""

"""Muster's own wire formats: labels and annotations of gangs (`gang`), and the nodes of their members (`placement`).

`node_faults` reads the faults of a Node.

The package imports only the other folders of `muster.api`.
"""

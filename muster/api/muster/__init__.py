"""Muster's own wire formats: labels and annotations of gangs (`gang`), and the nodes of their members (`placement`).

`node_faults` finds faults in a Node's conditions and taints.

The package imports only the other folders of `muster.api`.
"""

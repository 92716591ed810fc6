"""Muster's own objects: gangs as labels and annotations (`gang`), and the nodes of their members (`placement`).

`node_faults` reads the faults of a Node.

The package imports only the other folders of `muster.api`.
"""
